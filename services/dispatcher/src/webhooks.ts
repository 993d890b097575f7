import { orderingNow } from '@posthorn/domain/delivery/sequence.ts';
import { cancelReasonOf, type WebhookStops } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { Attempt, CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import { type Hold, holdSourceOf, isHolding } from '@posthorn/domain/waiting.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { type Signer, signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { type KeyPairSigner, keyPairSignerOf } from '@posthorn/domain/request/signature.ts';
import {
  charsOf,
  type DisabledReason,
  type EndpointTls,
  isSignedByCompany,
  type Webhook,
} from '@posthorn/domain/webhook.ts';
import { createReadTogether } from '@posthorn/platform/async/read-together.ts';
import {
  CoalescingCache,
  type ForgettingCache,
} from '@posthorn/platform/memory/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import {
  noSigningKeys,
  type SigningKeyStore,
} from '@posthorn/platform/mongo/companies/signing-keys.ts';
import { type Change, mayHaveChanged } from '@posthorn/platform/mongo/follow-changes.ts';
import type {
  FoundWebhook as StoredWebhook,
  UnopenedWebhook,
  WebhookStore,
} from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { createHash } from 'node:crypto';

/** The TLS settings of a webhook. Equal ones have the same id. */
export interface IdentifiedTls extends EndpointTls {
  id: string;
}

/** A webhook with everything that its deliveries need and that is derived from it only once. */
export interface LoadedWebhook {
  kind: 'opened';
  webhook: Webhook;
  signer: Signer;
  origin: string;
  /** Path and query. */
  path: string;
  /** Null for the defaults. */
  tls: IdentifiedTls | null;
  /** The hold of its app; null without one. */
  appHeld: Hold | null;
}

/** A stored webhook, whether or not all that signs its deliveries could be opened. */
type FoundWebhook = LoadedWebhook | (UnopenedWebhook & Pick<LoadedWebhook, 'appHeld'>);

/** Resolves with null when the webhook was deleted. */
export type LoadWebhook = (webhookId: string) => Promise<FoundWebhook | null>;

/** An attempt whose response disables its webhook. */
export interface DisablingAttempt {
  due: DueAttempt;
  attempt: Attempt;
  /** The webhook as it was for the attempt. */
  webhook: Webhook;
  reason: Extract<DisabledReason, 'gone' | 'control_header'>;
}

/**
 * Disables the webhook of an attempt. From the call on, this process sends nothing further to it until a client changes
 * it. Resolves when Kafka has the record by which the retry service disables it for all: a dispatcher, which strangers
 * answer, has no right to change webhooks.
 */
export type DisableByEndpoint = (made: DisablingAttempt) => Promise<void>;

export interface WebhookLoader {
  load: LoadWebhook;
  disable: DisableByEndpoint;
  /** Forgets a webhook by its id. Its size is in bytes. */
  cache: ForgettingCache;
}

/** How long webhooks and signing keys are cached while changes are not followed (docs/decisions/0003-caches.md). */
const CACHED_MS = 2_000;
/** Size of an entry without its texts: objects, keys, the signer, its place among those of its app. */
const ENTRY_BYTES = 1_664;

interface WebhookLoaderDeps {
  webhooks: Pick<WebhookStore, 'findMany' | 'holdsOfApps'>;
  /** Publishes the record for the retry service. */
  publishDisabling: (made: DisablingAttempt) => Promise<void>;
  /** For webhooks that the keys of their company sign. */
  loadSigner: LoadSigner;
  logger: Pick<Logger, 'error' | 'warn'>;
  /** The size that the cache may have. */
  cacheBytes: number;
  keepTrying: KeepTrying;
  /** Returns true while `forget` is called for every change of a webhook. */
  areChangesFollowed: () => boolean;
}

export function createWebhookLoader(deps: WebhookLoaderDeps): WebhookLoader {
  const { webhooks, loadSigner, logger, cacheBytes, keepTrying, areChangesFollowed } = deps;
  const readTogether = createReadTogether((ids) =>
    keepTrying('load webhooks', async () => {
      const stored = await webhooks.findMany([...ids]);
      const appIds = new Set(stored.flatMap(({ appId }) => appId ?? []));
      const holds = appIds.size > 0 ? await webhooks.holdsOfApps([...appIds]) : NO_HOLDS;
      return new Map(
        stored.map((webhook): [string, HoldableWebhook] => [
          webhook.id,
          { webhook, appHeld: holds.get(webhook.appId ?? '') ?? null },
        ]),
      );
    }),
  );
  const cache = new CoalescingCache<CachedWebhook>({
    maxSize: cacheBytes,
    sizeOf: bytesOf,
    ttlMs: CACHED_MS,
    isFollowed: areChangesFollowed,
    sourcesOf: holdsOf,
  });
  const read = async (id: string): Promise<CachedWebhook | null> => {
    const found = await readTogether(id);
    if (!found) return null;
    const { webhook, appHeld } = found;
    if (webhook.kind === 'opened') return prepare(webhook, appHeld);
    const { companyId, problem } = webhook;
    const { keyId, message: reason } = problem;
    logger.error({ webhookId: id, companyId, keyId, reason }, 'webhook cannot be opened');
    return { ...webhook, appHeld };
  };
  const byEndpoint = createDisabledByEndpoint(deps);
  return {
    async load(id) {
      const cached = await cache.get(id, () => read(id));
      const found =
        cached?.kind === 'signed_by_company' ? await withSigner(loadSigner, cached) : cached;
      return byEndpoint.isEmpty() ? found : byEndpoint.applyTo(found);
    },
    disable: byEndpoint.disable,
    cache,
  };
}

/** Most webhooks whose versions are remembered: at 300 bytes, 3 MB. The retry service has long disabled earlier ones. */
const MAX_DISABLED = 10_000;

/** A version of a webhook that its endpoint has disabled, and its record. */
interface DisabledVersion {
  atMs: number;
  published: Promise<void>;
}

/**
 * The webhooks that their endpoints have disabled. The cached webhook is enabled until the retry service has disabled the
 * stored one and that is noticed; meanwhile other attempts to the same endpoint get their slots.
 */
function createDisabledByEndpoint({
  publishDisabling,
  logger,
}: Pick<WebhookLoaderDeps, 'publishDisabling' | 'logger'>) {
  const disabled = new Map<string, DisabledVersion>();
  const disable: DisableByEndpoint = async (made) => {
    const { id, companyId, updatedAtMs: atMs } = made.webhook;
    const known = disabled.get(id);
    // The attempts that were under way together get the same answer.
    if (known && known.atMs >= atMs) return known.published;
    const published = publishDisabling(made);
    if (disabled.size >= MAX_DISABLED) disabled.clear();
    disabled.set(id, { atMs, published });
    try {
      await published;
    } catch (error) {
      disabled.delete(id);
      throw error;
    }
    const { reason } = made;
    logger.warn({ companyId, webhookId: id, reason }, 'webhook disabled by its endpoint');
  };
  return {
    disable,
    isEmpty: () => disabled.size === 0,
    /** Returns the webhook as its endpoint wants it, unless a client has changed it since. */
    applyTo(found: FoundWebhook | null): FoundWebhook | null {
      if (found?.kind !== 'opened') return found;
      const { webhook } = found;
      const version = disabled.get(webhook.id);
      if (!version) return found;
      if (webhook.updatedAtMs <= version.atMs) {
        return { ...found, webhook: { ...webhook, disabled: true } };
      }
      disabled.delete(webhook.id);
      return found;
    },
  };
}

/** A webhook that the keys of its company sign is cached without them, because they change without it. */
type CachedWebhook =
  FoundWebhook | (Omit<LoadedWebhook, 'kind' | 'signer'> & { kind: 'signed_by_company' });

/** A stored webhook with the hold of its app. */
interface HoldableWebhook extends Pick<LoadedWebhook, 'appHeld'> {
  webhook: StoredWebhook;
}

const NO_HOLDS: ReadonlyMap<string, Hold> = new Map();

function holdsOf(cached: CachedWebhook): string[] {
  const { appId } = cached.kind === 'unopened' ? cached : cached.webhook;
  return appId === null ? [] : [holdSourceOf(appId)];
}

/**
 * Returns what the caches forget after a change; null for nothing. Of an app only its hold is cached, with each of its
 * webhooks, which may be 10,000.
 */
export function changedSourceOf(
  change: Pick<Change, 'collection' | 'id' | 'fields'>,
): string | null {
  const { collection, id } = change;
  if (collection !== 'apps') return id;
  return mayHaveChanged(change, 'held') ? holdSourceOf(id) : null;
}

function bytesOf(cached: CachedWebhook): number {
  if (cached.kind === 'unopened') return ENTRY_BYTES;
  // Origin and path repeat the URL.
  return ENTRY_BYTES + cached.webhook.url.length + charsOf(cached.webhook);
}

function prepare(webhook: Webhook, appHeld: Hold | null): CachedWebhook {
  const { origin, pathname, search } = new URL(webhook.url);
  const tls = webhook.tls && identified(webhook.tls);
  const prepared = { webhook, origin, path: pathname + search, tls, appHeld };
  return isSignedByCompany(webhook.authMethod)
    ? { kind: 'signed_by_company', ...prepared }
    : { kind: 'opened', ...prepared, signer: signerOf(webhook) };
}

/** A webhook whose company has no usable keys counts as one that cannot be opened: nothing is sent unsigned. */
async function withSigner(
  loadSigner: LoadSigner,
  { webhook, origin, path, tls, appHeld }: Omit<LoadedWebhook, 'kind' | 'signer'>,
): Promise<FoundWebhook> {
  const found = await loadSigner(webhook.companyId);
  if (found.kind === 'opened') {
    return { kind: 'opened', webhook, origin, path, tls, appHeld, signer: found.signer };
  }
  const { id, companyId, projectId, appId, disabled, cancelBeforeMs, maxAttempts, held } = webhook;
  const { eventTypes, filter, ordering } = webhook;
  const stops = { disabled, cancelBeforeMs, maxAttempts, held, ordering, appHeld };
  const listed = { id, companyId, projectId, appId, eventTypes, filter };
  return { kind: 'unopened', ...listed, ...stops, problem: found.problem };
}

function identified(tls: EndpointTls): IdentifiedTls {
  const id = createHash('sha256').update(JSON.stringify(tls)).digest('base64');
  return { ...tls, id };
}

/** The signing keys of a company, whether or not they could be opened. */
type FoundSigner =
  { kind: 'opened'; signer: KeyPairSigner } | { kind: 'unopened'; problem: SealedValueError };

export type LoadSigner = (companyId: string) => Promise<FoundSigner>;

export interface SigningKeyLoader {
  load: LoadSigner;
  /** Forgets the keys of a company by the id of that. Its size is in bytes. */
  cache: ForgettingCache;
}

interface SigningKeyLoaderDeps {
  signingKeys: Pick<SigningKeyStore, 'findMany'>;
  logger: Pick<Logger, 'error'>;
  keepTrying: KeepTrying;
  /** Returns true while `forget` is called for every new signing key. */
  areChangesFollowed: () => boolean;
  nowMs: () => number;
}

/** Size of an entry: two keys, mostly outside the heap. */
const SIGNER_BYTES = 4_096;
/** Room for the keys of 2,000 companies; those of further companies are read again when they are needed. */
export const SIGNER_CACHE_BYTES = 2_000 * SIGNER_BYTES;

export function createSigningKeyLoader(deps: SigningKeyLoaderDeps): SigningKeyLoader {
  const { signingKeys, logger, keepTrying, nowMs } = deps;
  const readTogether = createReadTogether((ids) =>
    keepTrying('load signing keys', () => signingKeys.findMany([...ids], nowMs())),
  );
  const cache = new CoalescingCache<FoundSigner>({
    maxSize: SIGNER_CACHE_BYTES,
    sizeOf: () => SIGNER_BYTES,
    ttlMs: CACHED_MS,
    // A rotation adds a key. What cannot be opened may be repaired in place, so it is read again.
    isFollowed: ({ kind }) => kind === 'opened' && deps.areChangesFollowed(),
  });
  const read = async (companyId: string): Promise<FoundSigner | null> => {
    const found = await readTogether(companyId);
    if (found?.kind === 'opened') return { kind: 'opened', signer: keyPairSignerOf(found.keys) };
    const { keyId, message: reason } = found?.problem ?? noSigningKeys();
    logger.error({ companyId, keyId, reason }, 'signing keys of a company cannot be opened');
    return found ?? null;
  };
  return {
    async load(companyId) {
      const found = await cache.get(companyId, () => read(companyId));
      return found ?? { kind: 'unopened', problem: noSigningKeys() };
    },
    cache,
  };
}

/** Where an attempt goes, or why it goes nowhere. */
export type Target =
  | { kind: 'send'; to: LoadedWebhook }
  | { kind: 'cancel'; reason: CancelReason }
  /** The webhook or its app is on hold, or the company is suspended. */
  | { kind: 'wait' }
  /**
   * The stored secrets cannot be opened, and nothing is sent that cannot be signed. The attempt fails,
   * and the schedule leaves time to mend it.
   */
  | { kind: 'abort'; appId: string | null; maxAttempts: number | null }
  /** The webhook belongs to another company than the record says. */
  | { kind: 'company_mismatch' };

type Addressed = Pick<DueAttempt, 'webhookId' | 'companyId' | 'createdAtMs' | 'trigger'>;

export interface TargetDeps {
  loadWebhook: LoadWebhook;
  /** Whether the company is suspended, or is being removed. */
  isCompanySuspended: (companyId: string) => boolean;
  time: DatabaseTime;
}

const WAIT: Target = { kind: 'wait' };

export async function findTarget(
  { loadWebhook, isCompanySuspended, time }: TargetDeps,
  due: Addressed,
): Promise<Target> {
  const { webhookId, companyId, trigger } = due;
  const found = await loadWebhook(webhookId);
  if (found && companyOf(found) !== companyId) return { kind: 'company_mismatch' };
  const reason = cancelReasonOf(stateOf(found), due);
  if (reason) return { kind: 'cancel', reason };
  if (isCompanySuspended(companyId)) return WAIT;
  // A person sends a test to find out whether the endpoint is back.
  if (trigger !== 'test' && isHeld(found, time.nowMs())) return WAIT;
  if (found?.kind === 'opened') return { kind: 'send', to: found };
  return { kind: 'abort', appId: found?.appId ?? null, maxAttempts: found?.maxAttempts ?? null };
}

function isHeld(found: FoundWebhook | null, nowMs: number): boolean {
  if (isHolding(found?.appHeld ?? null, nowMs)) return true;
  return isHolding(stateOf(found)?.held ?? null, nowMs);
}

/** Null while deliveries to the webhook are attempted. */
export async function findCancelReason(
  load: LoadWebhook,
  due: Addressed,
): Promise<CancelReason | null> {
  return cancelReasonOf(stateOf(await load(due.webhookId)), due);
}

function companyOf(found: FoundWebhook): string {
  return found.kind === 'opened' ? found.webhook.companyId : found.companyId;
}

/** Null when the webhook was deleted. A disabled one keeps nothing behind an exhausted delivery. */
export function orderingOf(found: FoundWebhook | null): Webhook['ordering'] | null {
  return orderingNow(stateOf(found) ?? undefined);
}

function stateOf(
  found: FoundWebhook | null,
): (WebhookStops & Pick<Webhook, 'held' | 'ordering'>) | null {
  return found?.kind === 'opened' ? found.webhook : found;
}
