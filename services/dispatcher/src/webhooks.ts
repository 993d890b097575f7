import { cancelReasonOf } from '@posthorn/domain/delivery/when-cancelled.ts';
import type { CancelReason, DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { type Signer, signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { type KeyPairSigner, keyPairSignerOf } from '@posthorn/domain/request/signature.ts';
import {
  charsOf,
  type EndpointTls,
  isSignedByCompany,
  type Webhook,
} from '@posthorn/domain/webhook.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import {
  CoalescingCache,
  type ForgettingCache,
} from '@posthorn/platform/memory/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import {
  type FoundSigningKeys,
  noSigningKeys,
  type SigningKeyStore,
} from '@posthorn/platform/mongo/companies/signing-keys.ts';
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
}

/** A stored webhook, whether or not all that signs its deliveries could be opened. */
type FoundWebhook = LoadedWebhook | UnopenedWebhook;

/** Resolves with null when the webhook was deleted. */
export type LoadWebhook = (webhookId: string) => Promise<FoundWebhook | null>;

interface WebhookLoader {
  load: LoadWebhook;
  /** Forgets a webhook by its id. Its size is in bytes. */
  cache: ForgettingCache;
}

/** How long webhooks and signing keys are cached while changes are not followed (docs/decisions/0003-caches.md). */
const CACHED_MS = 2_000;
const READS = { maxItems: 500, lingerMs: 1, maxInFlight: 2 };
/** Size of an entry without its texts: objects, keys, the signer. */
const ENTRY_BYTES = 1_536;

interface WebhookLoaderDeps {
  webhooks: Pick<WebhookStore, 'findMany'>;
  /** For webhooks that the keys of their company sign. */
  loadSigner: LoadSigner;
  logger: Pick<Logger, 'error'>;
  /** The size that the cache may have. */
  cacheBytes: number;
  keepTrying: KeepTrying;
  /** Returns true while `forget` is called for every change of a webhook. */
  areChangesFollowed: () => boolean;
}

export function createWebhookLoader({
  webhooks,
  loadSigner,
  logger,
  cacheBytes,
  keepTrying,
  areChangesFollowed,
}: WebhookLoaderDeps): WebhookLoader {
  const batch = createBatcher<string, StoredWebhook | undefined>({
    ...READS,
    run: async (ids) => {
      const found = await keepTrying('load webhooks', () => webhooks.findMany([...new Set(ids)]));
      const byId = new Map(found.map((webhook) => [webhook.id, webhook]));
      return ids.map((id) => byId.get(id));
    },
  });
  const cache = new CoalescingCache<CachedWebhook>({
    maxSize: cacheBytes,
    sizeOf: bytesOf,
    ttlMs: CACHED_MS,
    isFollowed: areChangesFollowed,
  });
  const read = async (id: string): Promise<CachedWebhook | null> => {
    const webhook = await batch.add(id);
    if (!webhook) return null;
    if (webhook.kind === 'opened') return prepare(webhook);
    const { companyId, problem } = webhook;
    const { keyId, message: reason } = problem;
    logger.error({ webhookId: id, companyId, keyId, reason }, 'webhook cannot be opened');
    return webhook;
  };
  return {
    async load(id) {
      const cached = await cache.get(id, () => read(id));
      return cached?.kind === 'signed_by_company' ? withSigner(loadSigner, cached) : cached;
    },
    cache,
  };
}

/** A webhook that the keys of its company sign is cached without them, because they change without it. */
type CachedWebhook =
  FoundWebhook | (Omit<LoadedWebhook, 'kind' | 'signer'> & { kind: 'signed_by_company' });

function bytesOf(cached: CachedWebhook): number {
  if (cached.kind === 'unopened') return ENTRY_BYTES;
  // Origin and path repeat the URL.
  return ENTRY_BYTES + cached.webhook.url.length + charsOf(cached.webhook);
}

function prepare(webhook: Webhook): CachedWebhook {
  const { origin, pathname, search } = new URL(webhook.url);
  const tls = webhook.tls && identified(webhook.tls);
  const prepared = { webhook, origin, path: pathname + search, tls };
  return isSignedByCompany(webhook.authMethod)
    ? { kind: 'signed_by_company', ...prepared }
    : { kind: 'opened', ...prepared, signer: signerOf(webhook) };
}

/** A webhook whose company has no usable keys counts as one that cannot be opened: nothing is sent unsigned. */
async function withSigner(
  loadSigner: LoadSigner,
  { webhook, origin, path, tls }: Omit<LoadedWebhook, 'kind' | 'signer'>,
): Promise<FoundWebhook> {
  const { id, companyId, appId, disabled, eventTypes } = webhook;
  const found = await loadSigner(companyId);
  return found.kind === 'opened'
    ? { kind: 'opened', webhook, origin, path, tls, signer: found.signer }
    : { kind: 'unopened', id, companyId, appId, disabled, eventTypes, problem: found.problem };
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

/** Size of an entry: two keys, most of which is outside the heap. */
const SIGNER_BYTES = 4_096;
/** Room for the keys of 2,000 companies; those of further companies are read again when they are needed. */
export const SIGNER_CACHE_BYTES = 2_000 * SIGNER_BYTES;

export function createSigningKeyLoader(deps: SigningKeyLoaderDeps): SigningKeyLoader {
  const { signingKeys, logger, keepTrying, nowMs } = deps;
  const batch = createBatcher<string, FoundSigningKeys | undefined>({
    ...READS,
    run: async (ids) => {
      const wanted = [...new Set(ids)];
      const found = await keepTrying('load signing keys', () =>
        signingKeys.findMany(wanted, nowMs()),
      );
      return ids.map((id) => found.get(id));
    },
  });
  const cache = new CoalescingCache<FoundSigner>({
    maxSize: SIGNER_CACHE_BYTES,
    sizeOf: () => SIGNER_BYTES,
    ttlMs: CACHED_MS,
    // A rotation adds a key. What cannot be opened may be repaired in place, so it is read again.
    isFollowed: ({ kind }) => kind === 'opened' && deps.areChangesFollowed(),
  });
  const read = async (companyId: string): Promise<FoundSigner | null> => {
    const found = await batch.add(companyId);
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
  /**
   * The stored secrets cannot be opened, and nothing is sent that cannot be signed. The attempt fails,
   * and the schedule leaves time to mend it.
   */
  | { kind: 'abort'; appId: string | null }
  /** The webhook belongs to another company than the record says. */
  | { kind: 'company_mismatch' };

export async function findTarget(
  load: LoadWebhook,
  { webhookId, companyId }: Pick<DeliveryRef, 'webhookId' | 'companyId'>,
): Promise<Target> {
  const found = await load(webhookId);
  if (found && companyOf(found) !== companyId) return { kind: 'company_mismatch' };
  const reason = cancelReasonOf(stateOf(found));
  if (reason) return { kind: 'cancel', reason };
  if (found?.kind === 'opened') return { kind: 'send', to: found };
  return { kind: 'abort', appId: found?.appId ?? null };
}

/** Null while deliveries to the webhook are attempted. */
export async function findCancelReason(
  load: LoadWebhook,
  webhookId: string,
): Promise<CancelReason | null> {
  return cancelReasonOf(stateOf(await load(webhookId)));
}

function companyOf(found: FoundWebhook): string {
  return found.kind === 'opened' ? found.webhook.companyId : found.companyId;
}

function stateOf(found: FoundWebhook | null): { disabled: boolean } | null {
  return found?.kind === 'opened' ? found.webhook : found;
}
