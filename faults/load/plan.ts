/** How an endpoint answers one request. */
export type Reply =
  | { kind: 'status'; status: number; afterMs: number }
  /** The connection ends without a complete response. */
  | { kind: 'broken'; how: Breakage };

export type Breakage = 'reset' | 'closed' | 'no http' | 'half a header';

/** How the endpoints of a round behave. A delivery that they refuse is retried. */
export interface Plan {
  endpoints: number;
  /** How often a message is refused before it is accepted; Infinity for always. */
  refusalsOf: (n: number, endpoint: number) => number;
  /** `nth` counts the requests of this delivery from 1. */
  replyTo: (n: number, endpoint: number, nth: number) => Reply;
  /** The endpoint of message `n`; `all` for each endpoint of its company. */
  targetOf: (n: number) => number | 'all';
}

/** A status that is retried and leaves the circuit of its endpoint closed. */
export const REFUSED = 404;
const REFUSED_ONCE_EVERY = 10;
const REFUSED_TWICE_EVERY = 45;
const REFUSED_ALWAYS_EVERY = 200;
const TO_ALL_EVERY = 40;

export const ENDPOINTS = 8;

/** Most messages are accepted at once; one in ten is retried, some never succeed, and some go to a whole app. */
export const usualPlan: Plan = {
  endpoints: ENDPOINTS,
  refusalsOf: usualRefusals,
  replyTo: (n, _endpoint, nth) => ({
    kind: 'status',
    status: nth <= usualRefusals(n) ? REFUSED : 200,
    afterMs: 0,
  }),
  targetOf: (n) => (n % TO_ALL_EVERY === 7 ? 'all' : n % ENDPOINTS),
};

function usualRefusals(n: number): number {
  if (n % REFUSED_ALWAYS_EVERY === 3) return Infinity;
  if (n % REFUSED_TWICE_EVERY === 2) return 2;
  return n % REFUSED_ONCE_EVERY === 1 ? 1 : 0;
}
