import { createShares } from '@posthorn/platform/memory/shares.ts';
import { addressKey } from '../http/connections/address-key.ts';
import { ApiError, unavailable } from '../http/api-error.ts';

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
const SECOND_MS = 1_000;
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
      if (!misses.hasRoom(network, 1)) throw tooMany();
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
function tooMany(): ApiError {
  return new ApiError(
    429,
    'too_many_wrong_keys',
    'Too many wrong API keys arrive from everywhere; wait.',
    { headers: { 'Retry-After': '1' }, isDelayed: true },
  );
}
