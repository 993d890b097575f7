import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import { createShares } from '@posthorn/platform/memory/memory-budgets.ts';
import type { RedisClient } from '@posthorn/platform/redis/connect.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Request, Response } from 'express';
import { Counter, type Registry } from 'prom-client';
import { ApiError, unavailable } from '../api-error.ts';
import { addressKey } from './client-address.ts';
import {
  createAddToSharedCounts,
  createRateCounts,
  type Decision,
  type RateCounts,
} from './rate-limit-counts.ts';
import type { LimitedOwner } from './requests-under-way.ts';

/** Requests and wrong keys per minute; 0 for no limit. */
export interface Limits {
  company: number;
  /** Of each visit of a portal. */
  visit: number;
  address: number;
  wrongKeys: number;
}

export interface RateLimitDeps {
  redis: RedisClient;
  prefix: string;
  limits: Limits;
  /** The bound of the counts of all four, in bytes. */
  countsBytes: number;
  registry: Registry;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

export interface WrongKeys {
  /** Counts a wrong key. Throws ApiError 429 when the address has sent too many. */
  count: (address: string | undefined) => void;
  /**
   * Looks up a key or a link that was not valid before. Throws ApiError 429 when the address has sent too many wrong
   * ones, but for a few in each second, and when all addresses together have; 503 when too many are looked up at once.
   */
  lookUp: MissBudget['lookUp'];
}

export interface RateLimits {
  /** Before authentication; throws ApiError 429. */
  limitAddress: (request: Pick<Request, 'ip'>, response: Response) => void;
  /** After authentication, for the visit and the company in `locals.caller`; throws ApiError 429. */
  limitCompany: (response: Response) => void;
  /** Counts further requests of the company in `locals.caller`; throws ApiError 429 and counts none. */
  countMore: (response: Response, requests: number) => void;
  /**
   * Counts up to `count` messages that a company sends without a request. Returns how many of them it may send now, and
   * after how many milliseconds the next one; 0 when all are allowed.
   */
  takeMessages: (companyId: string, count: number) => { granted: number; waitMs: number };
  wrongKeys: WrongKeys;
  start: () => void;
  /** Shares the counts with the other gateways. */
  tick: () => Promise<void>;
  stop: () => void;
  /** The size of the counts, by estimate. */
  usedBytes: () => number;
}

type Scope = 'company' | 'visit' | 'address' | 'wrong_keys';

interface Limit {
  take: (key: string, amount?: number) => Decision | null;
  /** The decision of `take`; counts nothing. */
  peek: (key: string) => Decision | null;
}

/** A gateway learns this much later what the others have counted. */
const SHARE_EVERY_MS = 100;
/** A count, its key and its entries in a map and a set. */
const COUNT_BYTES = 250;
const SCOPES = 4;
/** Beyond its limit an address may have so many keys looked up in a second: one of them may be valid and new. */
const LOOK_UPS_PER_SECOND = 5;
const SECOND_MS = 1_000;

/** Limits requests per company, visit and address, and wrong keys, in memory (docs/decisions/0010-rate-limits.md). */
export function createRateLimits({ redis, prefix, ...deps }: RateLimitDeps): RateLimits {
  const add = createAddToSharedCounts(redis, prefix);
  const decisions = new Counter({
    name: 'posthorn_rate_limit_decisions_total',
    help: 'Requests and wrong keys that a limit allowed or refused.',
    labelNames: ['scope', 'outcome'],
    registers: [deps.registry],
  });
  const shared: RateCounts[] = [];
  const maxKeys = Math.floor(deps.countsBytes / SCOPES / COUNT_BYTES);

  function limitOf(scope: Scope, limit: number): Limit {
    if (limit === 0) return { take: () => null, peek: () => null };
    const counts = createRateCounts({ limit, maxKeys, nowMs: deps.nowMs });
    shared.push(counts);
    for (const outcome of ['allowed', 'refused']) decisions.inc({ scope, outcome }, 0);
    return {
      take(key, amount = 1) {
        const decision = counts.take(`${scope}:${key}`, amount);
        decisions.inc({ scope, outcome: decision.isAllowed ? 'allowed' : 'refused' }, amount);
        return decision;
      },
      peek: (key) => counts.peek(`${scope}:${key}`),
    };
  }

  const loop = createLoop({
    name: 'rate limits',
    everyMs: SHARE_EVERY_MS,
    run: async () => {
      await Promise.all(shared.map((counts) => counts.share(add)));
    },
    logger: deps.logger,
  });
  const usedBytes = (): number =>
    shared.reduce((sum, counts) => sum + counts.size(), 0) * COUNT_BYTES;
  return {
    ...checksOf(deps, limitOf),
    start: loop.start,
    tick: loop.tick,
    // Not awaited: Redis may not answer, and other gateways count without this one.
    stop: () => void loop.stop(),
    usedBytes,
  };
}

function checksOf(
  { limits, nowMs }: Pick<RateLimitDeps, 'limits' | 'nowMs'>,
  limitOf: (scope: Scope, limit: number) => Limit,
): Pick<RateLimits, 'limitAddress' | 'limitCompany' | 'countMore' | 'takeMessages' | 'wrongKeys'> {
  const company = limitOf('company', limits.company);
  const visit = limitOf('visit', limits.visit);
  const address = limitOf('address', limits.address);
  return {
    limitAddress(request, response) {
      enforce(response, 'address', address.take(addressKey(request.ip)));
    },
    limitCompany(response) {
      const { companyId, portal } = response.locals.caller as LimitedOwner;
      if (portal) enforce(response, 'visit', visit.take(portal.linkId));
      enforce(response, 'company', company.take(companyId));
    },
    countMore(response, requests) {
      if (requests === 0) return;
      const { companyId } = response.locals.caller as LimitedOwner;
      enforce(response, 'company', company.take(companyId, requests));
    },
    takeMessages(companyId, count) {
      const seen = company.peek(companyId);
      if (!seen || count === 0) return { granted: count, waitMs: 0 };
      const granted = seen.isAllowed ? Math.min(count, seen.remaining + 1) : 0;
      if (granted > 0) company.take(companyId, granted);
      return { granted, waitMs: granted < count ? seen.resetMs : 0 };
    },
    wrongKeys: createWrongKeys(limitOf('wrong_keys', limits.wrongKeys), nowMs),
  };
}

function createWrongKeys({ take, peek }: Limit, nowMs: () => number): WrongKeys {
  const lookUps = createLookUps(nowMs);
  const misses = createMissBudget(nowMs);
  return {
    count(address) {
      const decision = take(addressKey(address));
      if (decision?.isAllowed === false) throw tooMany('wrong_keys', decision);
    },
    async lookUp(address, find, isFound) {
      const key = addressKey(address);
      const decision = peek(key);
      if (decision?.isAllowed === false && !lookUps.take(key)) {
        throw tooMany('wrong_keys', decision);
      }
      return misses.lookUp(address, find, isFound);
    },
  };
}

/** Counts the look-ups of addresses that were over their limit in this second. */
function createLookUps(nowMs: () => number): { take: (key: string) => boolean } {
  const counts = new Map<string, number>();
  let second = 0;
  return {
    take(key) {
      const now = Math.floor(nowMs() / SECOND_MS);
      if (now !== second) counts.clear();
      second = now;
      const count = counts.get(key) ?? 0;
      if (count >= LOOK_UPS_PER_SECOND) return false;
      counts.set(key, count + 1);
      return true;
    },
  };
}

function enforce(
  response: Response,
  scope: Exclude<Scope, 'wrong_keys'>,
  decision: Decision | null,
): void {
  if (!decision) return;
  setRateLimitHeaders(response, scope, decision);
  if (!decision.isAllowed) throw tooMany(scope, decision);
}

/** As in draft-ietf-httpapi-ratelimit-headers-10, for the limit with the smallest remaining share. */
function setRateLimitHeaders(response: Response, scope: string, decision: Decision): void {
  const { limit, remaining, resetMs } = decision;
  const part = remaining / limit;
  const { leastPart = 1 } = response.locals as { leastPart?: number };
  if (part > leastPart) return;
  response.locals.leastPart = part;
  response.setHeader('RateLimit-Policy', `"${scope}";q=${limit};w=60`);
  response.setHeader('RateLimit', `"${scope}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`);
}

const REFUSALS = {
  company: ['rate_limited', 'This company has sent too many requests; wait.'],
  visit: ['rate_limited', 'This visit has sent too many requests; wait.'],
  address: ['rate_limited', 'This address has sent too many requests; wait.'],
  wrong_keys: ['too_many_wrong_keys', 'This address has sent too many wrong API keys; wait.'],
} as const;

function tooMany(scope: Scope, { resetMs }: Decision): ApiError {
  const [code, message] = REFUSALS[scope];
  const headers = { 'Retry-After': String(Math.ceil(resetMs / 1_000)) };
  return new ApiError(code, message, { headers, isDelayed: true });
}

/** Bounds how often this process looks up keys and links that do not exist, whatever addresses they come from. */
export interface MissBudget {
  /**
   * Returns what `find` resolves to. Throws ApiError 429 when too many look-ups of this second found nothing, and 503
   * when too many are under way, which happens when MongoDB is slow.
   */
  lookUp: <Found>(
    address: string | undefined,
    find: () => Promise<Found>,
    isFound: (found: Found) => boolean,
  ) => Promise<Found>;
}

/**
 * About 2 % of a core of MongoDB's primary for each gateway. Client networks share it, so one alone has half: as many
 * in a second as WRONG_KEYS_PER_MINUTE allows an address by default.
 */
const MISSES_PER_SECOND = 200;
/**
 * Look-ups under way are no misses yet: a gateway that was restarted looks up every key. Networks share these too. One
 * alone, such as a proxy with all clients behind it, has 2,000 look-ups a second while MongoDB takes 0.5 s.
 */
const MAX_UNDER_WAY = 2_000;

export function createMissBudget(nowMs: () => number): MissBudget {
  const misses = createShares(MISSES_PER_SECOND);
  const underWay = createShares(MAX_UNDER_WAY);
  /** The networks of the misses of this second. */
  let missed: string[] = [];
  let second = 0;

  function startSecond(): void {
    const now = Math.floor(nowMs() / SECOND_MS);
    if (now === second) return;
    for (const network of missed) misses.remove(network, 1);
    missed = [];
    second = now;
  }

  /** Many may have been under way: beyond its share, a network must not use up that of the others. */
  function countMiss(network: string): void {
    startSecond();
    if (!misses.hasRoom(network, 1)) return;
    misses.add(network, 1);
    missed.push(network);
  }

  return {
    async lookUp(address, find, isFound) {
      startSecond();
      const network = networkOf(address);
      if (!misses.hasRoom(network, 1)) throw tooManyMisses();
      if (!underWay.hasRoom(network, 1)) throw unavailable('too_many_waiting');
      underWay.add(network, 1);
      try {
        const found = await find();
        if (!isFound(found)) countMiss(network);
        return found;
      } finally {
        underWay.remove(network, 1);
      }
    },
  };
}

/** An IPv4 address, or an IPv6 /48: a customer may have a whole one, 65,536 networks of the size that `addressKey` counts. */
function networkOf(address: string | undefined): string {
  return addressKey(address).replace(/[0-9a-f]{1,4}\/64$/, '/48');
}

/** Not 503: strangers who send guesses must not make it look as if messages were refused (docs/runbook.md). */
function tooManyMisses(): ApiError {
  const message = 'Too many wrong API keys arrive from everywhere; wait.';
  const headers = { 'Retry-After': '1' };
  return new ApiError('too_many_wrong_keys', message, { headers, isDelayed: true });
}

/** Requests that may wait at once, with 1 kB each; further ones get 503. */
const MAX_WAITING = 1_000;
const BATCH = { maxItems: 200, lingerMs: 1, maxInFlight: 1 };

/**
 * Reads what is stored under an id for requests without an API key, which anyone can send with any id: in batches, one at
 * a time, so that a flood of them costs MongoDB little. Throws ApiError 503 when too many wait.
 */
export function createPublicRead<Value>(
  readMany: (ids: readonly string[]) => Promise<ReadonlyMap<string, Value>>,
): (id: string) => Promise<Value | undefined> {
  const batch = createBatcher<string, Value | undefined>({
    ...BATCH,
    run: async (ids) => {
      const found = await readMany([...new Set(ids)]);
      return ids.map((id) => found.get(id));
    },
  });
  return async (id) => {
    if (batch.size() >= MAX_WAITING) throw unavailable('too_many_waiting');
    return batch.add(id);
  };
}
