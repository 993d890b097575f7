import type { EventTypePolicy, NoTargetReason, NotStored } from '@posthorn/domain/message.ts';
import { eventTypeIdOf } from '@posthorn/domain/event-type-fields.ts';
import { filtersOf } from '@posthorn/domain/parse-filter.ts';
import { required } from '@posthorn/domain/required.ts';
import { charsOf, wantsEvent } from '@posthorn/domain/webhook.ts';
import { slicesOf } from '@posthorn/platform/async/fair-queue.ts';
import { createReadTogether } from '@posthorn/platform/async/read-together.ts';
import {
  CoalescingCache,
  type ForgettingCache,
} from '@posthorn/platform/memory/coalescing-cache.ts';
import type { AppTargets, ReadAppTargets } from '@posthorn/platform/mongo/webhooks/app-targets.ts';
import {
  type Filters,
  type FoundWebhook,
  type SelectingList,
  targetListOf,
  type WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { KnownEventType, MessagePolicy } from '../catalogue/message-policy.ts';
import { quotaExceeded } from '../projects/quotas.ts';
import {
  createSelectTargets,
  type FindWebhook,
  type ResolvedTargets,
  type SelectTargets,
} from './select-targets.ts';

/** Where a message is addressed to: every webhook of an app that wants its event type, or one webhook. */
export type Address =
  { kind: 'app'; appId: string; eventType: string | null } | { kind: 'webhook'; webhookId: string };

/** The webhooks of an address, of which a filter may leave some out. */
export interface Candidates extends ResolvedTargets {
  /** Absent when the catalogue of the project refuses nothing. */
  policy?: MessagePolicy;
  /** Returns those that a message goes to. Absent when no webhook has a filter: it goes to all. */
  select?: SelectTargets;
}

export interface TargetResolver {
  /**
   * Returns the webhooks that select the event type, oldest first, including those whose secrets cannot be decrypted: the
   * dispatcher records why nothing was sent. Null when the app or webhook does not exist or belongs
   * to another company. Throws ApiError 409 when there are more than a message may have.
   */
  candidatesOf: (companyId: string, address: Address) => Promise<Candidates | null>;
  /** Forgets an app or webhook by its id. Its size is in bytes, by estimate. */
  cache: ForgettingCache;
}

/** How long a result is cached while changes are not followed (docs/decisions/0003-caches.md). */
const CACHE_TTL_MS = 2_000;

export interface TargetDeps {
  /** Memory for the cache, in bytes. */
  cacheBytes: number;
  /** How many webhooks one message may go to: QUOTA_TARGETS_PER_MESSAGE. */
  maxTargets: number;
  webhooks: Pick<WebhookStore, 'findTarget' | 'appOf' | 'findTargets'>;
  readApps: ReadAppTargets;
  /** Null when the company has no such app. */
  notStoredByApp: (companyId: string, appId: string) => Promise<NotStored | null>;
  /** Null when the company has no such project. */
  policyOf: (companyId: string, projectId: string) => Promise<EventTypePolicy | null>;
  /** Returns an event type of a project; null when its catalogue has none of this name. */
  eventTypeOf: (companyId: string, id: string) => Promise<KnownEventType | null>;
  /** Returns true while `forget` is called for every change of an app or webhook. */
  areChangesFollowed: () => boolean;
  /** Returns how many changes of webhooks were followed whose app is not known: `forget` was not called for that. */
  changesOfUnknownApps: () => number;
  /** Reports webhooks whose filters would have cost too much for a message. */
  onUndecided: (webhookIds: readonly string[]) => void;
  monotonicMs: () => number;
}

export function createTargetResolver(deps: TargetDeps): TargetResolver {
  const { maxTargets, onUndecided } = deps;
  const lookUps = createLookUps(deps);

  const withFilters = (list: ResolvedTargets, filters: Filters | null, find: FindWebhook) =>
    filters === null || list.targets.length === 0
      ? list
      : { ...list, select: createSelectTargets({ list, filters, find, onUndecided }) };

  /** Of the app, or the webhook, that a message is addressed to. */
  const owner = async (companyId: string, address: Address): Promise<LoadedOwner | null> =>
    address.kind === 'webhook'
      ? lookUps.webhook(companyId, address.webhookId)
      : lookUps.app(companyId, address.appId);

  async function listFor(
    companyId: string,
    address: Address,
    found: LoadedOwner,
  ): Promise<Candidates | null> {
    if (address.kind === 'webhook') {
      return found.kind === 'webhooks' ? listOf(found.webhooks, found.notStored) : null;
    }
    const { appId, eventType } = address;
    if (found.kind === 'webhooks') {
      const wanting = found.webhooks.filter((each) => wantsEvent(each, eventType));
      const reason = found.webhooks.length === 0 ? 'no_webhook' : 'event_type';
      const list = withReason(listOf(wanting, found.notStored), reason);
      return withFilters(list, found.filters, (id) =>
        Promise.resolve(wanting.find((each) => each.id === id) ?? null),
      );
    }
    const wide = await lookUps.wide(companyId, found.number, { appId, eventType });
    if (wide?.kind !== 'targets') return null;
    const { filters, ...all } = wide.list;
    const list = withReason({ ...all, notStored: found.notStored }, 'event_type');
    const find: FindWebhook = async (id) =>
      (await lookUps.webhook(companyId, id))?.webhooks[0] ?? null;
    return withFilters(list, filters, find);
  }

  return {
    async candidatesOf(companyId, address) {
      const found = await owner(companyId, address);
      const list = found && (await listFor(companyId, address, found));
      if (!list) return null;
      if (list.targets.length > maxTargets) {
        throw quotaExceeded('QUOTA_TARGETS_PER_MESSAGE', maxTargets);
      }
      const policy = await lookUps.policy(companyId, found.projectId);
      return policy ? { ...list, policy } : list;
    },
    cache: lookUps.cache,
  };
}

/** Returns the look-ups of webhooks and apps, with their cache. */
function createLookUps(deps: TargetDeps) {
  const { maxTargets, webhooks } = deps;
  const readApp = createReadTogether((appIds) => deps.readApps(appIds, MOST_IN_NARROW_APP + 1), {
    maxItems: APPS_READ_TOGETHER,
  });
  const cache = new CoalescingCache<LoadedTargets>({
    maxSize: deps.cacheBytes,
    sizeOf: estimatedBytesOf,
    ttlMs: CACHE_TTL_MS,
    monotonicMs: deps.monotonicMs,
    // A webhook of a wide app is no source of it: after a change of any webhook the app is read again, once in two seconds.
    isFollowed: (value) =>
      deps.areChangesFollowed() &&
      (value.kind !== 'wide' || value.changes === deps.changesOfUnknownApps()),
    sourcesOf,
  });
  let wideApps = 0;
  return {
    cache,
    async webhook(companyId: string, id: string): Promise<LoadedWebhooks | null> {
      const found = await cache.get(`${companyId}/${id}`, () => loadWebhook(deps, companyId, id));
      return found?.kind === 'webhooks' ? found : null;
    },
    async app(companyId: string, appId: string): Promise<LoadedOwner | null> {
      const found = await cache.get(`${companyId}/${appId}`, async () => {
        const changes = deps.changesOfUnknownApps();
        const app = await readApp(appId);
        if (app?.companyId !== companyId) return null;
        return loadedApp(appId, app, () => ({ changes, number: ++wideApps }));
      });
      return found?.kind === 'webhooks' || found?.kind === 'wide' ? found : null;
    },
    policy: createLookUpPolicy(deps, cache),
    /** Each time that a wide app is read it has another number, so `forget` need not know the event types. */
    wide(companyId: string, number: number, query: { appId: string; eventType: string | null }) {
      const { appId, eventType } = query;
      return cache.get(`${companyId}/${appId}/${number}/${eventType ?? ''}`, async () => {
        // One more than a message may have, to see that there are too many.
        const limit = maxTargets + 1;
        return {
          kind: 'targets',
          list: await webhooks.findTargets(companyId, { ...query, limit }),
        };
      });
    },
  };
}

/** Returns the look-up of the policy of a project; null when it refuses no message. */
function createLookUpPolicy(deps: TargetDeps, cache: CoalescingCache<LoadedTargets>) {
  async function levelOf(companyId: string, projectId: string): Promise<EventTypePolicy> {
    const found = await cache.get(`${companyId}/${projectId}`, async () => {
      const policy = await deps.policyOf(companyId, projectId);
      return policy && { kind: 'policy', projectId, policy };
    });
    // Of a project that was removed meanwhile nothing is refused: its apps follow.
    return found?.kind === 'policy' ? found.policy : 'open';
  }
  async function typeOf(companyId: string, projectId: string, name: string) {
    const id = eventTypeIdOf(projectId, name);
    const found = await cache.get(`${companyId}/${id}`, async () => {
      const type = await deps.eventTypeOf(companyId, id);
      return type && { kind: 'event type', id, type };
    });
    return found?.kind === 'event type' ? found.type : null;
  }
  return async (companyId: string, projectId: string): Promise<MessagePolicy | null> => {
    const level = await levelOf(companyId, projectId);
    if (level === 'open') return null;
    return { level, typeOf: (name) => typeOf(companyId, projectId, name) };
  };
}

function withReason(list: ResolvedTargets, noTargetReason: NoTargetReason): ResolvedTargets {
  return list.targets.length === 0 ? { ...list, noTargetReason } : list;
}

/** A change of any of them changes the result. */
function sourcesOf(loaded: LoadedTargets): string[] {
  if (loaded.kind === 'targets') return [];
  if (loaded.kind === 'policy') return [loaded.projectId];
  if (loaded.kind === 'event type') return [loaded.id];
  const ids = loaded.kind === 'webhooks' ? loaded.webhooks.map(({ id }) => id) : [];
  return loaded.appId === null ? ids : [loaded.appId, ...ids];
}

function listOf(webhooks: readonly FoundWebhook[], notStored: NotStored): ResolvedTargets {
  return { ...targetListOf(webhooks, webhooks[0] ?? null), notStored };
}

interface LoadedWebhooks {
  kind: 'webhooks';
  appId: string | null;
  projectId: string;
  webhooks: FoundWebhook[];
  filters: Filters | null;
  notStored: NotStored;
}

/** The app has too many webhooks to keep: they are looked up by event type, under this number. */
interface LoadedWideApp {
  kind: 'wide';
  appId: string;
  projectId: string;
  number: number;
  /** `changesOfUnknownApps` before it was read. */
  changes: number;
  notStored: NotStored;
}

type LoadedOwner = LoadedWebhooks | LoadedWideApp;

/** The result of one look-up: of a webhook, an app, an app and an event type, a project, or an event type. */
type LoadedTargets =
  | LoadedOwner
  | { kind: 'targets'; list: SelectingList }
  | { kind: 'policy'; projectId: string; policy: EventTypePolicy }
  | { kind: 'event type'; id: string; type: KnownEventType };

/**
 * An app with more is wide. One look-up of a narrow app serves every event type, and holds at most 2 MB:
 * 8 KiB of custom headers and 13 kB of event types for each webhook.
 */
const MOST_IN_NARROW_APP = 100;

/** 20 apps as wide as narrow ones can be hold 40 MB; 20 usual ones 60 kB. */
const APPS_READ_TOGETHER = 20;

function loadedApp(
  appId: string,
  { projectId, webhooks, notStored }: AppTargets,
  asWide: () => Pick<LoadedWideApp, 'number' | 'changes'>,
): LoadedOwner {
  const app = { appId, projectId, notStored };
  return webhooks.length <= MOST_IN_NARROW_APP
    ? { kind: 'webhooks', ...app, webhooks, filters: filtersOf(webhooks) }
    : { kind: 'wide', ...app, ...asWide() };
}

/**
 * Returns null when there is no such webhook. A message to one webhook is stored as its app wants; a global webhook has
 * no app.
 */
async function loadWebhook(
  { webhooks, notStoredByApp }: TargetDeps,
  companyId: string,
  webhookId: string,
): Promise<LoadedTargets | null> {
  const found = await webhooks.findTarget(companyId, webhookId);
  if (!found) return null;
  const appId = found.kind === 'opened' ? found.appId : await webhooks.appOf(companyId, found.id);
  const notStored = appId === null ? null : await notStoredByApp(companyId, appId);
  // A message to the webhook itself passes no filter.
  const { projectId } = found;
  const webhook = { appId, projectId, webhooks: [found], filters: null };
  return { kind: 'webhooks', ...webhook, notStored: notStored ?? {} };
}

/** The key, the list, the entry of the cache and its key by app. */
const ENTRY_BYTES = 500;
/** The objects themselves, the times and the key by webhook, besides the texts. */
const WEBHOOK_BYTES = 600;
/** An object with two texts, or a text in a list, besides its characters. */
const PART_BYTES = 80;
/** An id in a list. */
const TARGET_BYTES = 70;
/** A filter as objects, for each character of its text. */
const FILTER_BYTES = 8;
/** An id in a set, beside the list. */
const IN_SET_BYTES = 50;

/** Estimates the bytes that the result of one look-up holds in the cache. */
export function estimatedBytesOf(loaded: LoadedTargets): number {
  switch (loaded.kind) {
    case 'wide':
    case 'policy':
      return ENTRY_BYTES;
    case 'event type':
      return ENTRY_BYTES + (loaded.type.schema?.text.length ?? 0);
    case 'webhooks':
      return loaded.webhooks.reduce((sum, each) => sum + bytesOfWebhook(each), ENTRY_BYTES);
    case 'targets': {
      const { targets, disabledTargets, orderedTargets, oldest, filters } = loaded.list;
      const inSets = disabledTargets.size + orderedTargets.size;
      const ids = targets.length * TARGET_BYTES + inSets * IN_SET_BYTES;
      return ENTRY_BYTES + ids + (oldest ? bytesOfWebhook(oldest) : 0) + bytesOfFilters(filters);
    }
  }
}

/** Equal filters are one object. */
function bytesOfFilters(filters: Filters | null): number {
  if (filters === null) return 0;
  const texts = Array.from(new Set(filters.values()), (each) => JSON.stringify(each));
  return filters.size * TARGET_BYTES + FILTER_BYTES * charsOf(texts);
}

/** A webhook whose secrets do not open counts the base only: its error is about as large. */
function bytesOfWebhook(webhook: FoundWebhook): number {
  const { eventTypes, filter } = webhook;
  const ofFilter = FILTER_BYTES * (filter?.length ?? 0);
  const ofLists = PART_BYTES * eventTypes.length + ofFilter;
  if (webhook.kind === 'unopened') return WEBHOOK_BYTES + ofLists + charsOf(eventTypes);
  const ofHeaders = PART_BYTES * 2 * webhook.customHeaders.length;
  return WEBHOOK_BYTES + ofLists + ofHeaders + charsOf(webhook);
}

/** Look-ups of different apps and webhooks, which may each need MongoDB; its pool has 20 connections. */
const LOOK_UPS_AT_ONCE = 16;

/** Looks up each different address once, and returns a function that returns what was found for one of them. */
export async function lookUpEach<Found>(
  addresses: readonly Address[],
  lookUp: (address: Address) => Promise<Found>,
): Promise<(address: Address) => NonNullable<Found>> {
  const byKey = new Map(addresses.map((address) => [JSON.stringify(address), address]));
  const found = new Map<string, Found>();
  for (const some of slicesOf([...byKey], LOOK_UPS_AT_ONCE)) {
    await Promise.all(some.map(async ([key, address]) => found.set(key, await lookUp(address))));
  }
  return (address) => required(found, JSON.stringify(address), 'look-up of the address');
}
