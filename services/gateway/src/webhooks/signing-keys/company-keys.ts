import type { IdPrefix } from '@posthorn/domain/ids/ids.ts';
import type { SigningKey, SigningKeys } from '@posthorn/domain/request/signing-keys.ts';
import type { SigningKeyStore } from '@posthorn/platform/mongo/signing-keys/signing-keys.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { unavailable } from '../../http/api-error.ts';
import { newKeyPair } from './new-signing-key.ts';

export interface CompanyKeysDeps {
  store: Pick<SigningKeyStore, 'find' | 'newestNumber' | 'insert' | 'retire'>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  invalidate: Invalidate;
}

/** The signing keys of a company (docs/contract.md C16). */
export interface CompanyKeys {
  /** The keys that sign now; null before the first use. */
  find: (companyId: string) => Promise<SigningKeys | null>;
  /** Makes the first key of a company that has none. */
  ensure: (companyId: string) => Promise<void>;
  /**
   * Makes a new key. The one before signs beside it for the grace; the grace of an earlier rotation ends.
   * Throws ApiError 503 when other processes keep rotating.
   */
  rotate: (companyId: string, graceSeconds: number) => Promise<SigningKey>;
}

/** Tries, when other requests rotate at the same moment. */
const MAX_TRIES = 10;

export function createCompanyKeys(deps: CompanyKeysDeps): CompanyKeys {
  const { store, nowMs } = deps;
  return {
    find: (companyId) => store.find(companyId, nowMs()),
    async ensure(companyId) {
      if ((await store.newestNumber(companyId)) > 0) return;
      // Another process may have made it first.
      await store.insert(newKey(deps, companyId, { number: 1, previousUntilMs: null }));
    },
    async rotate(companyId, graceSeconds) {
      for (let tryNumber = 1; tryNumber <= MAX_TRIES; tryNumber += 1) {
        const key = await tryToRotate(deps, companyId, graceSeconds);
        if (key) return key;
      }
      throw unavailable('changed_by_others');
    },
  };
}

/** One write is the whole rotation: the new key says how long the one before signs. Null when it came too late. */
async function tryToRotate(
  deps: CompanyKeysDeps,
  companyId: string,
  graceSeconds: number,
): Promise<SigningKey | null> {
  const { store, nowMs, invalidate } = deps;
  const before = await store.newestNumber(companyId);
  const untilMs = nowMs() + graceSeconds * 1_000;
  const previousUntilMs = before === 0 ? null : untilMs;
  const key = newKey(deps, companyId, { number: before + 1, previousUntilMs });
  if (!(await store.insert(key))) return null;
  await invalidate({ companyId, id: companyId });
  if (before > 0) await store.retire(companyId, before, untilMs);
  return key;
}

function newKey(
  { newId, nowMs }: CompanyKeysDeps,
  companyId: string,
  place: Pick<SigningKey, 'number' | 'previousUntilMs'>,
): SigningKey {
  return { id: newId('skey'), companyId, createdAtMs: nowMs(), ...newKeyPair(), ...place };
}
