import { createClosingCache } from '@posthorn/platform/memory/closing-cache.ts';
import { BOOK_AHEAD_MS, hostKeyOf } from '../../isolation/endpoint/host-pace.ts';

/**
 * Counts a token request of the company to the host of this URL, when it may be made now, and returns 0.
 * Otherwise books a later turn and returns the milliseconds until then.
 */
export type PaceTokenRequest = (companyId: string, tokenUrl: string) => number;

export interface TokenPaceDeps {
  /** Token requests of one company to one host, a whole number; 0 for no limit. */
  perSecond: number;
  monotonicMs: () => number;
}

/** The token requests of one company to one host. Times are monotonic. */
interface Pace {
  /** When all requests so far have had their share of the limit. */
  freeMs: number;
  /** Turns up to here are booked. */
  bookedUntilMs: number;
}

/** Requests of one second may be made at once: the limit is per second. */
const BURST_MS = 1_000;
/** Companies and hosts that are remembered, at 200 bytes. */
const MAX_PACES = 10_000;

/**
 * Many webhooks with different credentials may name one host as their token server: each of their attempts
 * would be a request to it, past the limit of attempts to that host.
 */
export function createTokenPace({ perSecond, monotonicMs }: TokenPaceDeps): PaceTokenRequest {
  if (perSecond === 0) return () => 0;
  const spacingMs = 1_000 / perSecond;
  const paces = createClosingCache<Pace>(MAX_PACES, () => undefined);
  return (companyId, tokenUrl) => {
    const pace = paces.get(hostKeyOf(companyId, tokenUrl), () => ({ freeMs: 0, bookedUntilMs: 0 }));
    const nowMs = monotonicMs();
    const freeMs = Math.max(pace.freeMs, nowMs) + spacingMs;
    if (freeMs <= nowMs + BURST_MS) {
      pace.freeMs = freeMs;
      return 0;
    }
    pace.bookedUntilMs = Math.max(pace.bookedUntilMs, nowMs + BOOK_AHEAD_MS) + spacingMs;
    return pace.bookedUntilMs - nowMs;
  };
}
