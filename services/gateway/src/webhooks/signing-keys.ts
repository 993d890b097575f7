import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { SigningKey, SigningKeys } from '@posthorn/domain/request/signature.ts';
import type { SigningKeyStore } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import { generateKeyPairSync } from 'node:crypto';
import { unavailable } from '../api-error.ts';
import { createPublicRead } from '../limits/rate-limits.ts';

interface CompanyKeysDeps {
  store: Pick<SigningKeyStore, 'find' | 'newestNumber' | 'insert' | 'retire'>;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
  invalidate: Invalidate;
}

interface KeyRotation {
  /** Of the new key. */
  id: string;
  graceSeconds: number;
}

/** The signing keys of a company (docs/contract.md C16). */
export interface CompanyKeys {
  /** The current keys; null before the first use. */
  find: (companyId: string) => Promise<SigningKeys | null>;
  /** Makes the first key of a company that has none. */
  ensure: (companyId: string) => Promise<void>;
  /**
   * Makes a new key. The previous one signs too during the grace; the grace of an earlier rotation ends.
   * Throws ApiError 503 when other processes keep rotating.
   */
  rotate: (companyId: string, rotation: KeyRotation) => Promise<SigningKey>;
}

/** The most tries while other requests rotate at the same moment. */
const MAX_TRIES = 10;

export function createCompanyKeys(deps: CompanyKeysDeps): CompanyKeys {
  const { store, nowMs } = deps;
  return {
    find: (companyId) => store.find(companyId, nowMs()),
    async ensure(companyId) {
      if ((await store.newestNumber(companyId)) > 0) return;
      // Another process may have made it first.
      const id = deps.newId('skey');
      await store.insert(newKey(deps, companyId, { id, number: 1, previousUntilMs: null }));
    },
    async rotate(companyId, rotation) {
      for (let tryNumber = 1; tryNumber <= MAX_TRIES; tryNumber += 1) {
        const key = await tryToRotate(deps, companyId, rotation);
        if (key) return key;
      }
      throw unavailable('changed_by_others');
    },
  };
}

/**
 * One write is the whole rotation: the new key contains the end of the previous one. Returns null after another
 * rotation.
 */
async function tryToRotate(
  deps: CompanyKeysDeps,
  companyId: string,
  { id, graceSeconds }: KeyRotation,
): Promise<SigningKey | null> {
  const { store, nowMs, invalidate } = deps;
  const before = await store.newestNumber(companyId);
  const untilMs = nowMs() + graceSeconds * 1_000;
  const previousUntilMs = before === 0 ? null : untilMs;
  const key = newKey(deps, companyId, { id, number: before + 1, previousUntilMs });
  if (!(await store.insert(key))) return null;
  await invalidate({ companyId, id: companyId });
  if (before > 0) await store.retire(companyId, before, untilMs);
  return key;
}

function newKey(
  { nowMs }: CompanyKeysDeps,
  companyId: string,
  place: Pick<SigningKey, 'id' | 'number' | 'previousUntilMs'>,
): SigningKey {
  return { companyId, createdAtMs: nowMs(), ...newKeyPair(), ...place };
}

/** Null for a company without keys, and for an unknown one. */
export type FindPublicKeys = (companyId: string) => Promise<SigningKeys | null>;

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

/** Returns a random Ed25519 key pair. */
function newKeyPair(): Pick<SigningKey, 'privateKey' | 'publicKey'> {
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (d === undefined || x === undefined) throw new Error('Node made no Ed25519 key');
  return { privateKey: d, publicKey: x };
}
