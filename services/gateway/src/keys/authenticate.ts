import {
  CoalescingCache,
  type ForgettingCache,
} from '@posthorn/platform/memory/coalescing-cache.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import {
  hashOfKey,
  isWellFormedKey,
  type KeyRecord,
} from '@posthorn/platform/mongo/companies/companies.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from '../api-error.ts';
import type { WrongKeys } from '../limits/rate-limits.ts';

interface Credentials {
  apiKey?: string | undefined;
  /** Of a session, in place of the key: the hash of the key that began it. */
  keyHash?: string | undefined;
  companyId?: string | undefined;
  /** The client's IP address, by which wrong keys are counted. */
  address: string | undefined;
}

/**
 * Returns what the key may do. Throws ApiError 401 without a valid key, 429 after too many wrong keys from one
 * address or from all of them, 503 when too many keys are being looked up, 403 when `companyid` is that of another
 * company and when the company is suspended.
 */
export type Authenticate = (credentials: Credentials) => Promise<KeyRecord>;

interface Authentication {
  authenticate: Authenticate;
  /** Loads a key into the cache, by its hash. */
  load: (keyHash: string) => Promise<unknown>;
  /** Forgets a key by its hash or id, and the keys of a company by the id of that. */
  cache: ForgettingCache;
  /** The size of the cache in bytes, by estimate. */
  usedBytes: () => number;
}

interface AuthenticateDeps {
  /** Returns null when no key has this hash. */
  findKey: (keyHash: string) => Promise<KeyRecord | null>;
  wrongKeys: WrongKeys;
  /** Called for each request with a valid key. */
  onUsed: (keyId: string) => void;
  /** The bound of the cache in bytes: valid keys, and hashes of wrong and of once valid ones. */
  cacheBytes: number;
  /** Returns true while `forget` is called for every change of a key or company. */
  areChangesFollowed: () => boolean;
  nowMs: () => number;
}

/** How long a key is cached while changes are not followed (docs/decisions/0003-caches.md). */
const FOUND_TTL_MS = 2_000;
/** A new key is valid everywhere at once; one that was tried before it was created, after this time. */
const WRONG_TTL_MS = 1_000;
/**
 * For this long after its last look-up, a key that was valid is looked up again, however many wrong keys its address
 * has sent.
 */
const KNOWN_TTL_MS = 3_600_000;
/** The hash, 64 characters, its entry in the cache, the stored value, and its hash by id and company. */
const FOUND_BYTES = 800;
const HASH_BYTES = 200;
/** Of the memory, for valid keys: 23,000 of them by default. */
const FOUND_SHARE = 3 / 4;

/**
 * The response is the same for a key that is missing, malformed, revoked, expired or unknown
 * (docs/contract.md, C4.1). Only what may be a key is looked up, and of an address that has sent too many wrong ones
 * only keys that were valid before, and a few others in each second.
 */
export function createAuthentication(deps: AuthenticateDeps): Authentication {
  const { findKey, wrongKeys, cacheBytes, nowMs } = deps;
  const found = new CoalescingCache<KeyRecord>({
    maxSize: cacheBytes * FOUND_SHARE,
    sizeOf: () => FOUND_BYTES,
    ttlMs: FOUND_TTL_MS,
    isFollowed: deps.areChangesFollowed,
    sourcesOf: ({ keyId, companyId }) => [keyId, companyId],
  });
  const maxSize = Math.floor((cacheBytes * (1 - FOUND_SHARE)) / 2 / HASH_BYTES);
  const wrong = createHashes({ maxSize, ttlMs: WRONG_TTL_MS, nowMs });
  const known = createHashes({ maxSize, ttlMs: KNOWN_TTL_MS, nowMs });

  async function load(keyHash: string, lookUp: LookUp): Promise<KeyRecord | null> {
    const find = (): Promise<KeyRecord | null> => findKey(keyHash);
    const key = await (known.has(keyHash) ? find() : lookUp(find));
    (key ? known : wrong).add(keyHash);
    return key;
  }
  async function keyOf(keyHash: string, lookUp: LookUp): Promise<KeyRecord | null> {
    if (wrong.has(keyHash)) return null;
    const key = await found.get(keyHash, () => load(keyHash, lookUp));
    return key && !isExpired(key, nowMs()) ? key : null;
  }
  /** Throws ApiError 429 or 503 when the key may not be looked up. */
  async function keyFor({ apiKey = '', keyHash, address }: Credentials): Promise<KeyRecord | null> {
    // The hash in a session was signed by a gateway, so it is no guess.
    if (keyHash !== undefined) return keyOf(keyHash, (find) => find());
    if (!isWellFormedKey(apiKey)) return null;
    return keyOf(hashOfKey(apiKey), (find) => wrongKeys.lookUp(address, find, isThere));
  }

  return {
    async authenticate(credentials) {
      const key = await keyFor(credentials);
      if (!key) throw refused(credentials, wrongKeys);
      const { companyId } = credentials;
      if (companyId && companyId !== key.companyId) throw new ApiError('company_mismatch');
      if (key.isSuspended) throw new ApiError('company_suspended');
      deps.onUsed(key.keyId);
      return key;
    },
    load: (keyHash) => keyOf(keyHash, (find) => find()),
    cache: found,
    usedBytes: () => found.usedSize() + (wrong.size() + known.size()) * HASH_BYTES,
  };
}

type LookUp = (find: () => Promise<KeyRecord | null>) => Promise<KeyRecord | null>;

const isThere = (key: KeyRecord | null): boolean => key !== null;

/** Throws ApiError 429 when the address has sent too many wrong keys. */
function refused({ keyHash, address }: Credentials, wrongKeys: WrongKeys): ApiError {
  // A session whose key was revoked is no guess.
  if (keyHash !== undefined) return sessionEnded();
  wrongKeys.count(address);
  return new ApiError('unauthorized');
}

export const sessionEnded = (): ApiError =>
  new ApiError('unauthorized', 'There is no session, or it has ended. Sign in.');

function isExpired({ expiresAtMs }: KeyRecord, nowMs: number): boolean {
  return expiresAtMs !== null && expiresAtMs <= nowMs;
}

/** The API key that a request has in its headers. */
interface GivenKey {
  /** Undefined without one. '' for two different ones: no key is valid then. */
  apiKey: string | undefined;
  isBearer: boolean;
}

/** RFC 6750, 2.1. RFC 9110, 11.1: the name of a scheme is case-insensitive. */
const BEARER = /^bearer(?: +(.*))?$/i;

/**
 * Returns the API key of a request: `x-api-key`, or the token of `Authorization: Bearer`. Another scheme is not ours, as
 * when a proxy in front asks for a password.
 */
export function givenKeyOf(headers: IncomingHttpHeaders): GivenKey {
  const named = headers['x-api-key'] as string | undefined;
  const { authorization } = headers;
  const bearer = authorization === undefined ? null : BEARER.exec(authorization);
  if (!bearer) return { apiKey: named, isBearer: false };
  const [, token = ''] = bearer;
  return { apiKey: named === undefined || named === token ? token : '', isBearer: true };
}

/** Whether the request has anything that says who makes it, valid or not. */
export function hasCredentials(headers: IncomingHttpHeaders): boolean {
  const names = ['x-api-key', 'authorization', SESSION_HEADER];
  return names.some((name) => headers[name] !== undefined);
}

/**
 * No form and no link of another site can set a header, and no script of one without permission that the
 * gateway never gives (docs/contract.md C19.3). A cookie without this header is ignored.
 */
export const SESSION_HEADER = 'x-posthorn-session';

interface Hashes {
  add: (keyHash: string) => void;
  has: (keyHash: string) => boolean;
  size: () => number;
}

interface HashesOptions {
  maxSize: number;
  ttlMs: number;
  nowMs: () => number;
}

/** Remembers hashes for `ttlMs`. The oldest come first, as all are kept equally long. */
function createHashes({ maxSize, ttlMs, nowMs }: HashesOptions): Hashes {
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
      // The age is negative after the clock was set back: the key must not be refused until it catches up.
      return ageMs >= 0 && ageMs < ttlMs;
    },
    size: () => addedAtMs.size,
  };
}

export interface LastUsed {
  /** Notes that the key is used now. */
  note: (keyId: string) => void;
  start: () => void;
  /** Writes the times that are due. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

interface LastUsedDeps {
  /**
   * Stores the times, each under the id of its key, where no time of the same minute is stored. Resolves with the times
   * that are stored now.
   */
  write: (usedAtMs: ReadonlyMap<string, number>) => Promise<ReadonlyMap<string, number>>;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

const EVERY_MS = 5_000;
/** A key that is always in use costs one write in this time, and one read of its document for each further gateway. */
const WRITE_EVERY_MS = 60_000;
/** Keys that were used in one minute; 2 MB. With more, all times are written at once, some of them before their minute. */
const MAX_KEYS = 20_000;

/** When each API key was used last, to the minute. */
export function createLastUsed({ write, nowMs, logger }: LastUsedDeps): LastUsed {
  const unwritten = new Map<string, number>();
  /** The stored times, which may be those of other gateways. */
  const writtenAtMs = new Map<string, number>();

  async function run(): Promise<void> {
    const startedMs = nowMs();
    for (const [id, atMs] of writtenAtMs) {
      if (Math.abs(startedMs - atMs) >= WRITE_EVERY_MS) writtenAtMs.delete(id);
    }
    const isFull = unwritten.size >= MAX_KEYS;
    const due = new Map([...unwritten].filter(([id]) => isFull || !writtenAtMs.has(id)));
    if (due.size === 0) return;
    const stored = await write(due);
    for (const [id, atMs] of due) {
      writtenAtMs.set(id, stored.get(id) ?? startedMs);
      if (unwritten.get(id) === atMs) unwritten.delete(id);
    }
    // A key that is forgotten here costs a read.
    for (const id of writtenAtMs.keys()) {
      if (writtenAtMs.size <= MAX_KEYS) break;
      writtenAtMs.delete(id);
    }
  }

  const loop = createLoop({ name: 'last use of keys', everyMs: EVERY_MS, run, logger });
  return {
    note(keyId) {
      const isNew = !unwritten.has(keyId);
      // So many wait only while MongoDB is away.
      if (isNew && unwritten.size >= 2 * MAX_KEYS) return;
      unwritten.set(keyId, nowMs());
      if (isNew && unwritten.size === MAX_KEYS) void loop.tick();
    },
    start: loop.start,
    tick: loop.tick,
    stop: loop.stop,
  };
}
