import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import { hashOfKey } from '@posthorn/platform/mongo/accounts/make-api-key.ts';
import { ApiError } from '../http/api-error.ts';
import type { Caller } from '../http/route.ts';

export interface Credentials {
  apiKey: string | undefined;
  companyId: string | undefined;
  /** Where the request comes from; wrong keys are counted by it. */
  address: string | undefined;
}

/**
 * Tells who calls. Throws ApiError 401 without a valid key, 429 after too many wrong ones from one
 * address, 403 when `companyid` is another company's.
 */
export type Authenticate = (credentials: Credentials) => Promise<Caller>;

export interface Authentication {
  authenticate: Authenticate;
  /** Takes the key with this hash for unknown until it is looked up again. */
  forget: (keyHash: string) => void;
  /** What is remembered, in bytes, by estimate. */
  usedBytes: () => number;
}

export interface WrongKeys {
  /** Throws ApiError 429 when the address has sent too many. */
  count: (address: string | undefined) => void;
}

export interface AuthenticateDeps {
  /** Null when no key has this hash. */
  companyOfKey: (keyHash: string) => Promise<string | null>;
  wrongKeys: WrongKeys;
  /** What may be remembered, in bytes: half of it for good keys, half for wrong ones. */
  cacheBytes: number;
  nowMs: () => number;
}

/** A new key is good at once everywhere, unless it was tried before it was made: then after a second. */
const REMEMBER_FOUND_MS = 2_000;
const REMEMBER_WRONG_MS = 1_000;
/** The hash, 64 characters, with its place in the cache and what is kept under it. */
const FOUND_BYTES = 400;
const WRONG_BYTES = 200;

/**
 * A missing key is looked up like a wrong one: the answer and the time it takes are the same for a
 * key that is missing, malformed, revoked or unknown.
 */
export function createAuthentication(deps: AuthenticateDeps): Authentication {
  const { companyOfKey, wrongKeys, cacheBytes, nowMs } = deps;
  const callers = createCoalescingCache<Caller>({
    maxSize: cacheBytes / 2,
    sizeOf: () => FOUND_BYTES,
    ttlMs: REMEMBER_FOUND_MS,
  });
  const wrong = createWrongHashes(Math.floor(cacheBytes / 2 / WRONG_BYTES), nowMs);
  const load = async (keyHash: string): Promise<Caller | null> => {
    const companyId = await companyOfKey(keyHash);
    if (companyId !== null) return { companyId };
    wrong.add(keyHash);
    return null;
  };

  const authenticate: Authenticate = async ({ apiKey = '', companyId, address }) => {
    const keyHash = hashOfKey(apiKey);
    const caller = wrong.has(keyHash) ? null : await callers.get(keyHash, () => load(keyHash));
    if (!caller) {
      wrongKeys.count(address);
      throw new ApiError(401, 'unauthorized', 'Send a valid API key in the header x-api-key.');
    }
    if (companyId && companyId !== caller.companyId) {
      throw new ApiError(403, 'company_mismatch', 'companyid is not the company of the API key.');
    }
    return caller;
  };
  const usedBytes = (): number => callers.usedSize() + wrong.size() * WRONG_BYTES;
  return { authenticate, forget: callers.forget, usedBytes };
}

interface WrongHashes {
  add: (keyHash: string) => void;
  has: (keyHash: string) => boolean;
  size: () => number;
}

/** Spares the store a flood of one wrong key. The oldest stand first, as all are kept equally long. */
function createWrongHashes(maxSize: number, nowMs: () => number): WrongHashes {
  const addedAtMs = new Map<string, number>();
  return {
    add(keyHash) {
      addedAtMs.delete(keyHash);
      addedAtMs.set(keyHash, nowMs());
      const [oldest] = addedAtMs.keys();
      if (addedAtMs.size > maxSize && oldest !== undefined) addedAtMs.delete(oldest);
    },
    has(keyHash) {
      const ageMs = nowMs() - (addedAtMs.get(keyHash) ?? -Infinity);
      // A clock that was set back must not keep a key out either.
      return ageMs >= 0 && ageMs < REMEMBER_WRONG_MS;
    },
    size: () => addedAtMs.size,
  };
}
