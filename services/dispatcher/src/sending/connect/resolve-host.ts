import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import { readMachineNames, type AddressRecord, type MachineNames } from './hosts-file.ts';

/** Every address of a host name, unjudged; rejects with a `LookupFailedError` when there is none. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

export interface HostResolver {
  resolve: Resolve;
  /** For a host that did not answer: asks anew next time, so that one that has moved is found. */
  forget: (hostname: string) => void;
}

/** The name has no address, or no name server would tell it. */
export class LookupFailedError extends Error {
  readonly code = 'LOOKUP_FAILED';
  constructor(cause: unknown) {
    super('the name was not resolved', { cause });
  }
}

interface Answer {
  addresses: LookupAddress[];
  /** Failures are remembered too, or a dead name with many deliveries would be asked for each. */
  failure: LookupFailedError | null;
  ttlMs: number;
}

const MAX_NAMES = 10_000;
const MIN_TTL_MS = 5_000;
const MAX_TTL_MS = 60_000;
/** Below the shortest usual retry delay (5 s), so that a retry is not given the same failure again. */
const FAILURE_TTL_MS = 2_000;

/**
 * Asks the hosts file, then the name servers, and remembers the answer for its TTL, within 5 to
 * 60 s. Not `dns.lookup`: it tells no TTL, it goes through the search domains of a cluster, and a
 * name whose servers are silent holds one of libuv's few threads for seconds, so that a customer
 * with a handful of such names could stop every other look-up. Both files are read anew every 5 s.
 */
export function createHostResolver(
  readNames: () => Promise<MachineNames> = readMachineNames,
  monotonicMs: () => number = () => performance.now(),
): HostResolver {
  const names = createCoalescingCache<MachineNames>({
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
    const machine = await names.get('machine', readNames);
    return machine ? askFor(hostname, machine) : failed(null);
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

/** One family may be missing; the hosts file comes first, as with every other program. */
async function askFor(hostname: string, machine: MachineNames): Promise<Answer> {
  const listed = machine.listed.get(hostname.replace(/\.$/, ''));
  if (listed) return found(listed, MIN_TTL_MS);
  const [v4, v6] = await Promise.allSettled([
    machine.resolve4(hostname),
    machine.resolve6(hostname),
  ]);
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
