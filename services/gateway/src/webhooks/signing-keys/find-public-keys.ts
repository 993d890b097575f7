import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import type {
  FoundSigningKeys,
  SigningKeyStore,
} from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import { unavailable } from '../../http/api-error.ts';
import type { FindPublicKeys } from './public-keys-page.ts';

/** Requests that may wait at once, with 1 kB each; further ones get 503. */
const MAX_WAITING = 1_000;

/**
 * Looks up the keys of companies for requests without an API key, which anyone can send with any id: in
 * batches, one at a time, so that a flood of them costs MongoDB little. Throws ApiError 503 when too many
 * wait, SealedValueError when a key cannot be opened.
 */
export function createFindPublicKeys(
  store: Pick<SigningKeyStore, 'findMany'>,
  nowMs: () => number,
): FindPublicKeys {
  const batch = createBatcher<string, FoundSigningKeys | undefined>({
    maxItems: 200,
    lingerMs: 1,
    maxInFlight: 1,
    run: async (ids) => {
      const found = await store.findMany([...new Set(ids)], nowMs());
      return ids.map((id) => found.get(id));
    },
  });
  return async (companyId) => {
    if (batch.size() >= MAX_WAITING) throw unavailable('too_many_waiting');
    const found = await batch.add(companyId);
    if (found?.kind === 'unopened') throw found.problem;
    return found?.keys ?? null;
  };
}
