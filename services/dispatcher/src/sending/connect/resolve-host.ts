import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { readSystemNames, type AddressRecord, type SystemNames } from './hosts-file.ts';

/** Resolves with every address of a host, unchecked. Rejects with LookupFailedError when there is none. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

export interface HostResolver {
  resolve: Resolve;
  /** Drops the cached addresses of a host that could not be reached: it may have moved. */
  forget: (hostname: string) => void;
}

/** The host has no address, or no name server could be asked. */
export class LookupFailedError extends Error {
  readonly code = 'LOOKUP_FAILED';
  constructor(cause: unknown) {
    super('the host name was not resolved', { cause });
  }
}

interface Answer {
  addresses: LookupAddress[];
  /** Failures are cached too; otherwise a dead host would be looked up for each of its deliveries. */
  failure: LookupFailedError | null;
  ttlMs: number;
}

const MAX_NAMES = 10_000;
const MIN_TTL_MS = 5_000;
const MAX_TTL_MS = 60_000;
/** Shorter than the first retry delay (5 s), so that a retry does not get the same failure from the cache. */
const FAILURE_TTL_MS = 2_000;

/**
 * Looks a host up in the hosts file, then at the name servers, and caches the answer for its TTL, for
 * 5 s at least and 60 s at most. Does not use `dns.lookup`: it returns no TTL, it tries the search
 * domains of a cluster, and a name whose servers are silent blocks one of libuv's few threads for
 * seconds, so that a company with a few such names could stop every other look-up. /etc/hosts and
 * /etc/resolv.conf are read again every 5 s.
 */
export function createHostResolver(
  readNames: () => Promise<SystemNames> = readSystemNames,
  monotonicMs = monotonicClockMs,
): HostResolver {
  const names = createCoalescingCache<SystemNames>({
    maxSize: 1,
    sizeOf: () => 1,
    ttlMs: MIN_TTL_MS,
    monotonicMs,
  });
  const answers = createCoalescingCache<Answer>({
    maxSize: MAX_NAMES,
    sizeOf: () => 1,
    ttlMs: ({ ttlMs }) => ttlMs,
    monotonicMs,
  });
  const find = async (hostname: string): Promise<Answer> => {
    const system = await names.get('system', readNames);
    return system ? lookUp(hostname, system) : failed(null);
  };
  return {
    async resolve(hostname) {
      const answer = await answers.get(hostname, () => find(hostname));
      if (!answer || answer.failure) throw answer?.failure ?? new LookupFailedError(null);
      return answer.addresses;
    },
    forget: answers.forget,
  };
}

/** The hosts file comes first, as in every other program. A host may have addresses of one family only. */
async function lookUp(hostname: string, system: SystemNames): Promise<Answer> {
  const listed = system.hostsFile.get(hostname.replace(/\.$/, ''));
  if (listed) return found(listed, MIN_TTL_MS);
  const [v4, v6] = await Promise.allSettled([system.resolve4(hostname), system.resolve6(hostname)]);
  const records = [v4, v6].flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  if (records.length > 0) return found(addressesOf(records), ttlMsOf(records));
  return failed(v4.status === 'rejected' ? v4.reason : null);
}

function found(addresses: string[], ttlMs: number): Answer {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return { addresses: found, failure: null, ttlMs };
}

function failed(cause: unknown): Answer {
  return { addresses: [], failure: new LookupFailedError(cause), ttlMs: FAILURE_TTL_MS };
}

const addressesOf = (records: AddressRecord[]): string[] => records.map(({ address }) => address);

function ttlMsOf(records: AddressRecord[]): number {
  const shortestMs = Math.min(...records.map(({ ttl }) => ttl)) * 1_000;
  return Math.min(MAX_TTL_MS, Math.max(MIN_TTL_MS, shortestMs));
}
