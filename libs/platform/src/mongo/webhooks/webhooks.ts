import type { WebhookStops } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { Filter } from '@posthorn/domain/filter.ts';
import { filtersOf } from '@posthorn/domain/parse-filter.ts';
import type { Hold } from '@posthorn/domain/waiting.ts';
import { type Message, NONE_DISABLED } from '@posthorn/domain/message.ts';
import {
  areSealedTexts,
  openValues,
  type SealedName,
  type SealedTexts,
  textsToSeal,
  unsealedValues,
} from '@posthorn/domain/webhook-fields.ts';
import { isOrdered, selectorsOf, type Webhook } from '@posthorn/domain/webhook.ts';
import type { mongo } from 'mongoose';
import { type Binding, SealedValueError, type Vault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { WebhookDocument } from '../documents.ts';
import { readInParts } from '../read-in-parts.ts';
import { createInsertTogether } from '../write-together.ts';
import { holdsOfApps } from './holds.ts';

export interface WebhookPage {
  /** Undefined for the webhooks of every app, and the global ones. */
  appId?: string | undefined;
  skip: number;
  limit: number;
}

/** The changes of an update. */
export type WebhookChanges = Partial<
  Omit<Webhook, 'id' | 'companyId' | 'projectId' | 'appId' | 'environmentId' | 'createdAtMs'>
>;

/** A webhook whose sealed values cannot be opened. Posthorn sends nothing to it. */
export interface UnopenedWebhook extends Pick<
  Webhook,
  | 'id'
  | 'companyId'
  | 'projectId'
  | 'appId'
  | 'disabled'
  | 'cancelBeforeMs'
  | 'eventTypes'
  | 'filter'
  | 'maxAttempts'
  | 'held'
  | 'ordering'
> {
  kind: 'unopened';
  problem: SealedValueError;
}

/** A result of a query for several webhooks: a webhook that cannot be opened does not affect the others. */
export type FoundWebhook = OpenedWebhook | UnopenedWebhook;

export interface OpenedWebhook extends Webhook {
  kind: 'opened';
}

/** The targets of a message, oldest first, and the oldest webhook itself; null without targets. */
export interface TargetList extends Pick<Message, 'disabledTargets'> {
  /** Their ids. */
  targets: readonly string[];
  /** Those whose deliveries may have to wait for earlier ones; nearly all messages share the empty set. */
  orderedTargets: ReadonlySet<string>;
  oldest: FoundWebhook | null;
}

/** The webhooks of an app that select an event type. */
export interface SelectingList extends TargetList {
  /** By id; null when none of them has one. */
  filters: Filters | null;
}

/** The filters of webhooks by their ids. */
export type Filters = ReadonlyMap<string, Filter>;

interface TargetQuery {
  appId: string;
  /** As in `wantsEvent`: null for a message without one. */
  eventType: string | null;
  limit: number;
}

/**
 * Targets and lists are read without `tls`, which may have 24 kB: it is null there. So is `metadata`, of up to 16 KiB,
 * in targets and in what dispatchers read, which is without `filter` too.
 */
export type WebhookStore = ReturnType<typeof createWebhookStore>;

export function createWebhookStore(db: mongo.Db, vault: Vault) {
  const webhooks = collection(db, 'webhooks');
  const insertTogether = createInsertTogether(db, 'webhooks');
  return {
    ...createWebhookReads(db, vault),
    ...createCancellationReads(db),
    insert: (webhook: Webhook): Promise<void> => insertTogether(sealWebhook(vault, webhook)),
    /**
     * Applies the changes to the webhook as `seen`, and returns the result. Null when it was changed or deleted
     * meanwhile.
     */
    async update(seen: Webhook, changes: WebhookChanges): Promise<Webhook | null> {
      const changed = sealWebhook(vault, { ...seen, ...changes });
      const { _id, companyId, ...fields } = changed;
      const updated = await webhooks.updateOne(
        { _id, companyId, updatedAt: new Date(seen.updatedAtMs) },
        // The retry service writes `deferredAt`, so it stays; a client's change ends `failing`.
        { $set: { ...fields, ...isCancellingAfter(changes) }, $unset: { failing: '' } },
      );
      return updated.matchedCount === 1 ? openWebhook(vault, changed) : null;
    },
    /** Returns whether a webhook was deleted. */
    async deleteOne(companyId: string, _id: string): Promise<boolean> {
      return (await documentsOf(db, 'webhooks', companyId).deleteMany({ _id })) === 1;
    },
  };
}

/** The retry service stores the cancellations, and then takes the mark away. */
function isCancellingAfter({
  cancelBeforeMs = null,
}: WebhookChanges): Pick<WebhookDocument, 'isCancelling'> {
  return cancelBeforeMs === null ? {} : { isCancelling: true };
}

function createWebhookReads(db: mongo.Db, vault: Vault) {
  const toFound = (document: WebhookDocument): FoundWebhook => tryToOpen(vault, document);
  const own = (companyId: string) => documentsOf(db, 'webhooks', companyId);
  const byId = (companyId: string, _id: string) => own(companyId).findOne({ _id });
  const findTarget = async (companyId: string, _id: string): Promise<FoundWebhook | null> => {
    const [found] = await own(companyId)
      .find({ _id })
      .project<WebhookDocument>(UNUSED_BY_TARGETS)
      .toArray();
    return found ? toFound(found) : null;
  };
  return {
    findTarget,
    has: async (companyId: string, id: string): Promise<boolean> =>
      (await byId(companyId, id)) !== null,
    /** Null for a global webhook, and when there is no such webhook. */
    appOf: async (companyId: string, id: string): Promise<string | null> =>
      (await byId(companyId, id))?.appId ?? null,
    /** Throws SealedValueError when the webhook cannot be opened. */
    async findOne(companyId: string, id: string): Promise<Webhook | null> {
      const found = await byId(companyId, id);
      return found && openWebhook(vault, found);
    },
    /** At most `limit` webhooks of one app that select the event type; reads only what decides about the targets. */
    async findTargets(companyId: string, query: TargetQuery): Promise<SelectingList> {
      const found = own(companyId).find(wanting(query)).sort({ _id: 1 }).limit(query.limit);
      const outlines = found.project<TargetDocument>(TARGET).batchSize(TARGETS_OF_A_BATCH);
      const targets = await outlines
        .map(({ _id: id, disabled, filter = null, ordering = 'none' }) => {
          return { id, disabled, filter, ordering };
        })
        .toArray();
      const [first] = targets;
      const oldest = first ? await findTarget(companyId, first.id) : null;
      return { ...targetListOf(targets, oldest), filters: filtersOf(targets) };
    },
    /** Counts, up to `limit`, the webhooks of an app, or the global ones of a project when `appId` is null. */
    countOf: (
      companyId: string,
      { appId, projectId }: Pick<Webhook, 'appId' | 'projectId'>,
      limit: number,
    ): Promise<number> =>
      own(companyId).count(appId === null ? { appId, projectId } : { appId }, { limit }),
    /** Returns the page in chunks of at most 10, oldest first. Each chunk is opened when it is read. */
    list(companyId: string, { appId, skip, limit }: WebhookPage): AsyncIterable<FoundWebhook[]> {
      const found = own(companyId).find(appId === undefined ? {} : { appId });
      return inParts(withoutTls(found.sort({ _id: 1 }).skip(skip).limit(limit)), toFound);
    },
    /** For the dispatcher, which works for all companies. */
    async findMany(ids: readonly string[]): Promise<FoundWebhook[]> {
      const found = collection(db, 'webhooks').find({ _id: { $in: [...ids] } });
      return (await found.project<WebhookDocument>(UNUSED_BY_DISPATCHERS).toArray()).map(toFound);
    },
    /** By app; an app that is not on hold is missing. */
    holdsOfApps: (ids: readonly string[]): Promise<Map<string, Hold>> => holdsOfApps(db, ids),
  };
}

function createCancellationReads(db: mongo.Db) {
  const own = (companyId: string) => documentsOf(db, 'webhooks', companyId);
  return {
    /** By id, of those webhooks whose pending deliveries a client has cancelled; in milliseconds since 1970. */
    async cancelBeforeOf(companyId: string, ids: readonly string[]): Promise<Map<string, number>> {
      const found = await own(companyId)
        .find({ _id: { $in: [...ids] }, cancelBeforeMs: { $gt: 0 } })
        .project<Pick<WebhookDocument, '_id' | 'cancelBeforeMs'>>({ cancelBeforeMs: 1 })
        .toArray();
      return new Map(found.map(({ _id, cancelBeforeMs }) => [_id, cancelBeforeMs ?? 0]));
    },
    /** Whether pending deliveries of the company are cancelled and not all of them stored so. */
    isCancelling: async (companyId: string): Promise<boolean> =>
      (await own(companyId).findOne({ isCancelling: true })) !== null,
  };
}

function withoutTls(found: mongo.FindCursor<WebhookDocument>): mongo.FindCursor<WebhookDocument> {
  return found.project<WebhookDocument>({ 'sealed.tls': 0 });
}

/** The fields that the targets of a message are read without: 24 kB and 16 KiB at most. */
export const UNUSED_BY_TARGETS = { 'sealed.tls': 0, metadata: 0 } as const;

/** 16 KiB and 4 KiB at most. */
const UNUSED_BY_DISPATCHERS = { metadata: 0, filter: 0 } as const;

/** 1 MB of the widest webhooks: 8 KiB of custom headers, 13 kB of event types and 16 KiB of metadata each. */
const BATCH = 25;
/** Reading, opening and sending 5 of the widest webhooks takes 2 ms of CPU time. */
const PART = 5;

async function* inParts(
  found: mongo.FindCursor<WebhookDocument>,
  toFound: (document: WebhookDocument) => FoundWebhook,
): AsyncGenerator<FoundWebhook[]> {
  for await (const part of readInParts(found, { batch: BATCH, part: PART })) {
    yield part.map(toFound);
  }
}

/** Decoding all 10,000 targets of a message at once would take 20 ms of CPU time. */
const TARGETS_OF_A_BATCH = 1_000;

type TargetDocument = Pick<WebhookDocument, '_id' | 'disabled'> &
  Partial<Pick<WebhookDocument, 'filter' | 'ordering'>>;

const TARGET = { disabled: 1, filter: 1, ordering: 1 } as const;

/** Nearly all messages have this set of ordered targets. */
export const NONE_ORDERED: ReadonlySet<string> = new Set();

/** Returns the targets of a message to these webhooks. */
export function targetListOf(
  webhooks: readonly Pick<Webhook, 'id' | 'disabled' | 'ordering'>[],
  oldest: FoundWebhook | null,
): TargetList {
  const disabled = webhooks.filter((each) => each.disabled);
  const ordered = webhooks.filter(isOrdered);
  return {
    targets: webhooks.map(({ id }) => id),
    disabledTargets: disabled.length === 0 ? NONE_DISABLED : new Set(disabled.map(({ id }) => id)),
    orderedTargets: ordered.length === 0 ? NONE_ORDERED : new Set(ordered.map(({ id }) => id)),
    oldest,
  };
}

/**
 * `wantsEvent` as a filter: points of one index, whose results MongoDB merges by id. With `$or` it sorts them in memory, and
 * `$size: 0` reads every webhook of the app.
 */
function wanting({
  appId,
  eventType,
}: TargetQuery): mongo.Filter<Omit<WebhookDocument, 'companyId'>> {
  const selectors = eventType === null ? [] : selectorsOf(eventType);
  // The empty list, for the webhooks that receive all.
  return { appId, eventTypes: { $in: [[], ...selectors] as string[] } };
}

/** Opens a webhook for a list: one that cannot be opened has its problem in place of what is sealed. */
export function tryToOpen(vault: Vault, document: WebhookDocument): FoundWebhook {
  try {
    return { kind: 'opened', ...openWebhook(vault, document) };
  } catch (problem) {
    if (!(problem instanceof SealedValueError)) throw problem;
    const { _id: id, companyId, projectId, appId, disabled, eventTypes } = document;
    const { cancelBeforeMs, filter, maxAttempts, held, ordering } = openValues(document);
    const listed = { id, companyId, projectId, appId, disabled, eventTypes, filter };
    const state = { ...listed, cancelBeforeMs, maxAttempts, held, ordering };
    return { kind: 'unopened', ...state, problem };
  }
}

export function sealWebhook(vault: Vault, webhook: Webhook): WebhookDocument {
  const { id, companyId, createdAtMs, updatedAtMs } = webhook;
  const sealed = textsToSeal(webhook).map(([name, text]) => [
    name,
    vault.seal(text, bindingOf(webhook, name)),
  ]);
  const texts = Object.fromEntries(sealed) as SealedTexts;
  return {
    _id: id,
    companyId,
    ...openValues(webhook),
    sealed: texts,
    keyId: vault.keyIdOf(texts.secret),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

/** Throws SealedValueError unless every value was sealed for this webhook. */
export function openWebhook(vault: Vault, document: WebhookDocument): Webhook {
  const { _id: id, companyId, url, sealed, createdAt, updatedAt } = document;
  if (!areSealedTexts(sealed)) {
    throw new SealedValueError(`webhook ${id} has no sealed values`, null);
  }
  const values = unsealedValues(sealed, (name, text) =>
    vault.open(text, bindingOf({ id, companyId, url }, name)),
  );
  return {
    id,
    companyId,
    ...openValues(document),
    ...values,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
}

function bindingOf(
  { id: ownerId, companyId, url }: Pick<Webhook, 'id' | 'companyId' | 'url'>,
  field: SealedName,
): Binding {
  return { companyId, ownerId, field, target: targetOf(url) };
}

/** Scheme, host and port: the path may change, but the secrets are bound to the server. */
function targetOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** The state of a webhook, for services that send nothing to it. */
export interface WebhookState extends WebhookStops {
  ordering: Webhook['ordering'];
  hasRateLimit: boolean;
  /** When the webhook was last marked as deferred, in milliseconds since 1970; null if never. */
  deferredAtMs: number | null;
}

const STATE = {
  disabled: 1,
  cancelBeforeMs: 1,
  rateLimitPerSecond: 1,
  deferredAt: 1,
  ordering: 1,
} as const;

type StateDocument = Pick<WebhookDocument, '_id' | Exclude<keyof typeof STATE, 'ordering'>> &
  Partial<Pick<WebhookDocument, 'ordering'>>;

function stateOf({
  disabled,
  cancelBeforeMs,
  rateLimitPerSecond,
  deferredAt,
  ordering = 'none',
}: StateDocument): WebhookState {
  const hasRateLimit = rateLimitPerSecond !== null;
  const deferredAtMs = deferredAt?.getTime() ?? null;
  return { disabled, cancelBeforeMs, hasRateLimit, deferredAtMs, ordering };
}

/** The part of a webhook that a resend or a replay needs. */
export type ResentTo = Pick<
  WebhookDocument,
  'appId' | 'disabled' | 'eventTypes' | 'rateLimitPerSecond' | 'cancelBeforeMs'
> &
  Partial<Pick<WebhookDocument, 'filter'>>;

const RESENT_TO = {
  _id: 0,
  appId: 1,
  disabled: 1,
  eventTypes: 1,
  filter: 1,
  rateLimitPerSecond: 1,
  cancelBeforeMs: 1,
} as const;

export type WebhookStates = ReturnType<typeof createWebhookStates>;

export function createWebhookStates(db: mongo.Db) {
  const webhooks = collection(db, 'webhooks');
  return {
    /** By id, of all companies, without deleted webhooks. Needs no encryption key: it reads no sealed value. */
    async statesOf(ids: readonly string[]): Promise<Map<string, WebhookState>> {
      const found = await webhooks
        .find({ _id: { $in: [...ids] } })
        .project<StateDocument>(STATE)
        .toArray();
      return new Map(found.map((document) => [document._id, stateOf(document)]));
    },
    /** Null when it was deleted. */
    targetOf: (companyId: string, _id: string): Promise<ResentTo | null> =>
      webhooks.findOne<ResentTo>({ _id, companyId }, { projection: RESENT_TO }),
    /** Stores that these webhooks had an old backlog for their endpoints at `atMs` (since 1970). */
    async markDeferred(ids: readonly string[], atMs: number): Promise<void> {
      // `updatedAt` stays: it is the version of the client's settings.
      const deferredAt = new Date(atMs);
      await webhooks.updateMany({ _id: { $in: [...ids] } }, { $set: { deferredAt } });
    },
  };
}
