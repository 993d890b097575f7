import type { SigningKeyStore } from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import { createPublicRead } from '../../limits/public-reads.ts';
import type { FindPublicKeys } from './public-keys-page.ts';

/**
 * Looks up the keys of companies for requests without an API key. Throws ApiError 503 when too many wait,
 * SealedValueError when a key cannot be opened.
 */
export function createFindPublicKeys(
  store: Pick<SigningKeyStore, 'findMany'>,
  nowMs: () => number,
): FindPublicKeys {
  const read = createPublicRead((companyIds) => store.findMany([...companyIds], nowMs()));
  return async (companyId) => {
    const found = await read(companyId);
    if (found?.kind === 'unopened') throw found.problem;
    return found?.keys ?? null;
  };
}
