import { keyPairSignerOf, type KeyPairSigner } from '@posthorn/domain/request/signing-keys.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import {
  noSigningKeys,
  type FoundSigningKeys,
  type SigningKeyStore,
} from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import type { SealedValueError } from '@posthorn/platform/vault/vault.ts';

/** The signing keys of a company, whether or not they could be opened. */
export type FoundSigner =
  { kind: 'opened'; signer: KeyPairSigner } | { kind: 'unopened'; problem: SealedValueError };

export type LoadSigner = (companyId: string) => Promise<FoundSigner>;

export interface SigningKeyLoader {
  load: LoadSigner;
  forget: (companyId: string) => void;
  forgetAll: () => void;
  /** Bytes that the cache holds. */
  usedBytes: () => number;
}

export interface SigningKeyLoaderDeps {
  signingKeys: Pick<SigningKeyStore, 'findMany'>;
  keepTrying: KeepTrying;
  nowMs: () => number;
}

/** Keys are cached as long as webhooks are. A rotation is announced through Redis. */
const CACHED_MS = 2_000;
/** Size of an entry: two keys, most of which is outside the heap. */
const ENTRY_BYTES = 4_096;
/** Room for the keys of 2,000 companies; those of further companies are read again with their webhooks. */
export const SIGNER_CACHE_BYTES = 2_000 * ENTRY_BYTES;

export function createSigningKeyLoader(deps: SigningKeyLoaderDeps): SigningKeyLoader {
  const { signingKeys, keepTrying, nowMs } = deps;
  const batch = createBatcher<string, FoundSigningKeys | undefined>({
    maxItems: 500,
    lingerMs: 1,
    maxInFlight: 2,
    run: async (ids) => {
      const wanted = [...new Set(ids)];
      const found = await keepTrying('load signing keys', () =>
        signingKeys.findMany(wanted, nowMs()),
      );
      return ids.map((id) => found.get(id));
    },
  });
  const cache = createCoalescingCache<FoundSigner>({
    maxSize: SIGNER_CACHE_BYTES,
    sizeOf: () => ENTRY_BYTES,
    ttlMs: CACHED_MS,
  });
  const read = async (companyId: string): Promise<FoundSigner | null> => {
    const found = await batch.add(companyId);
    if (found?.kind !== 'opened') return found ?? null;
    return { kind: 'opened', signer: keyPairSignerOf(found.keys) };
  };
  return {
    async load(companyId) {
      const found = await cache.get(companyId, () => read(companyId));
      return found ?? { kind: 'unopened', problem: noSigningKeys() };
    },
    forget: cache.forget,
    forgetAll: cache.forgetAll,
    usedBytes: cache.usedSize,
  };
}
