import { CoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** Resolves with the addresses of a host, 32 at most, unchecked. Rejects with LookupFailedError when there is none. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

export interface HostResolver {
  resolve: Resolve;
  /** Drops the cached addresses of a host that could not be reached: it may have moved. */
  forget: (hostname: string) => void;
  /** Look-ups that found a cached answer, and those that did not. */
  counts: () => Readonly<Record<'hit' | 'miss', number>>;
  usedBytes: () => number;
}

/** The host has no address, or no name server could be asked. */
export class LookupFailedError extends Error {
  readonly code = 'LOOKUP_FAILED';
  constructor(cause: unknown) {
    super('the host name was not resolved', { cause });
  }
}

interface Answer {
  /** Addresses of a family whose answer comes late are added while the answer is cached. */
  addresses: LookupAddress[];
  /** Failures are cached too; otherwise a dead host would be looked up for each of its deliveries. */
  failure: LookupFailedError | null;
  ttlMs: number;
  bytes: number;
}

/** The key, the promise, the entry of the cache; and for each address a record of its text and family. */
const ANSWER_BYTES = 320;
const ADDRESS_BYTES = 96;
/** With two errors, each with its stack. */
const FAILURE_BYTES = 2_048;
/** An answer may have 4,000, and each of them is checked for each connection: 5 to 8 ms. */
const MAX_ADDRESSES = 32;
const MIN_TTL_MS = 5_000;
/** As long as a connection lives. A host that cannot be reached is looked up again at once. */
const MAX_TTL_MS = 300_000;
/** Shorter than the first retry delay (5 s), so that a retry does not get the same failure from the cache. */
const FAILURE_TTL_MS = 2_000;

/**
 * When one family has addresses, the other has this time to answer; RFC 8305, section 3, recommends 50 ms. Some name
 * servers never answer the question for IPv6, and three of them used up the time of the whole attempt.
 */
const OTHER_FAMILY_WITHIN_MS = 100;

interface ResolverOptions {
  /** The bound of the cached answers, in bytes. */
  maxBytes: number;
  readNames?: () => Promise<SystemNames>;
  monotonicMs?: () => number;
  /** Resolves when the other family has had its time to answer. */
  waitForOther?: () => Promise<void>;
}

/**
 * Looks a host up in the hosts file, then at the name servers, and caches the answer for its TTL, for
 * 5 s at least and 300 s at most. Does not use `dns.lookup`: it returns no TTL, it tries the search
 * domains of a cluster, and a name whose servers are silent blocks one of libuv's few threads for
 * seconds, so that a company with a few such names could stop every other look-up. /etc/hosts and
 * /etc/resolv.conf are read again every 5 s.
 */
export function createHostResolver({
  maxBytes,
  readNames = readSystemNames,
  monotonicMs = monotonicClockMs,
  waitForOther = () => wait(OTHER_FAMILY_WITHIN_MS),
}: ResolverOptions): HostResolver {
  const names = new CoalescingCache<SystemNames>({
    maxSize: 1,
    sizeOf: () => 1,
    ttlMs: MIN_TTL_MS,
    monotonicMs,
  });
  const answers = new CoalescingCache<Answer>({
    maxSize: maxBytes,
    sizeOf: ({ bytes }) => bytes,
    ttlMs: ({ ttlMs }) => ttlMs,
    monotonicMs,
  });
  const find = async (hostname: string): Promise<Answer> => {
    const system = await names.get('system', readNames);
    return system ? lookUp(hostname, system, waitForOther) : failed(null);
  };
  return {
    async resolve(hostname) {
      const answer = await answers.get(hostname, () => find(hostname));
      if (!answer || answer.failure) throw answer?.failure ?? new LookupFailedError(null);
      return answer.addresses;
    },
    forget: (hostname) => {
      answers.forget(hostname);
    },
    counts: () => answers.counts(),
    usedBytes: () => answers.usedSize(),
  };
}

/** The hosts file comes first, as in every other program. A host may have addresses of one family only. */
async function lookUp(
  hostname: string,
  system: SystemNames,
  waitForOther: () => Promise<void>,
): Promise<Answer> {
  const listed = system.hostsFile.get(hostname.replace(/\.$/, ''));
  if (listed) return found(listed, MIN_TTL_MS);
  const families = [system.resolve4(hostname), system.resolve6(hostname)];
  const whole = Promise.allSettled(families).then(answerOf);
  const early = Promise.any(families.map(addressesOrNone)).then(async (records) => {
    await waitForOther();
    // With room for those that come late.
    return found(addressesOf(records), ttlMsOf(records), MAX_ADDRESSES);
  });
  const answer = await Promise.race([whole, early.catch(() => whole)]);
  // No address is cached for longer than its TTL: those of the late family wait for the next look-up then.
  void whole.then(({ addresses, ttlMs }) => {
    if (ttlMs >= answer.ttlMs) answer.addresses = addresses;
  });
  return answer;
}

/** Rejects when the family has none. */
async function addressesOrNone(family: Promise<AddressRecord[]>): Promise<AddressRecord[]> {
  const records = await family;
  if (records.length === 0) throw new LookupFailedError(null);
  return records;
}

function answerOf(families: readonly PromiseSettledResult<AddressRecord[]>[]): Answer {
  const records = families.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  if (records.length > 0) return found(addressesOf(records), ttlMsOf(records));
  const [v4] = families;
  return failed(v4?.status === 'rejected' ? v4.reason : null);
}

function found(addresses: string[], ttlMs: number, room = 0): Answer {
  const kept = addresses.slice(0, MAX_ADDRESSES);
  const found = kept.map((address) => ({ address, family: isIP(address) }));
  const bytes = ANSWER_BYTES + Math.max(kept.length, room) * ADDRESS_BYTES;
  return { addresses: found, failure: null, ttlMs, bytes };
}

function failed(cause: unknown): Answer {
  const failure = new LookupFailedError(cause);
  return { addresses: [], failure, ttlMs: FAILURE_TTL_MS, bytes: FAILURE_BYTES };
}

const addressesOf = (records: AddressRecord[]): string[] => records.map(({ address }) => address);

function ttlMsOf(records: AddressRecord[]): number {
  const shortestMs = Math.min(...records.map(({ ttl }) => ttl)) * 1_000;
  return Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, shortestMs));
}

/** An address of a host. */
export interface AddressRecord {
  address: string;
  /** Seconds for which it may be cached. */
  ttl: number;
}

/** The host names of this machine as it is configured now: its hosts file and its name servers. */
interface SystemNames {
  /** Addresses by name in lower case. */
  hostsFile: ReadonlyMap<string, string[]>;
  resolve4: (hostname: string) => Promise<AddressRecord[]>;
  resolve6: (hostname: string) => Promise<AddressRecord[]>;
}

/** Each name server is asked twice, for 2 s, so that a silent one leaves time for the attempt. */
const RESOLVER_OPTIONS = { timeout: 2_000, tries: 2 };

/** Reads /etc/hosts and /etc/resolv.conf. A missing hosts file counts as empty. */
export async function readSystemNames(path = '/etc/hosts'): Promise<SystemNames> {
  const resolver = new Resolver(RESOLVER_OPTIONS);
  return {
    hostsFile: parseHosts(await readFile(path, 'utf8').catch(() => '')),
    resolve4: (hostname) => resolver.resolve4(hostname, { ttl: true }),
    resolve6: (hostname) => resolver.resolve6(hostname, { ttl: true }),
  };
}

/** Parses hosts(5). Leaves out addresses with a zone (`fe80::1%lo0`), which are link-local and never allowed. */
export function parseHosts(text: string): Map<string, string[]> {
  const byName = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    if (isIP(address) === 0 || address.includes('%')) continue;
    for (const name of names) byName.set(name, [...(byName.get(name) ?? []), address]);
  }
  return byName;
}

/**
 * The name that the TLS handshake sends is without the dot at the end of a URL's host (RFC 6066, section 3): servers
 * written in Go refuse it otherwise. An address is not sent.
 */
export function serverNameOf(hostname: string): string {
  return isIP(hostname) ? '' : hostname.replace(/\.+$/, '');
}
