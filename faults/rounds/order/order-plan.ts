import { createRandom } from '../../../test/support/samples/seeded-random.ts';
import type { Plan, Reply } from '../../load/plan.ts';

/*
 * The messages of the round: message `n` is for key `n % KEYS`, and the next one of that key is `n + KEYS`. Each key goes to
 * the two webhooks of one of two apps.
 */

export const KEYS = 200;
export const ENDPOINTS = 4;
const KEYS_OF_APP = KEYS / 2;

export function keyOf(n: number): number {
  return n % KEYS;
}

/** The place of the message among those of its key, from 0. */
export function placeOf(n: number): number {
  return Math.floor(n / KEYS);
}

/** 0 or 1. */
export function appOf(key: number): number {
  return key < KEYS_OF_APP ? 0 : 1;
}

export function endpointsOf(key: number): readonly [number, number] {
  const app = appOf(key);
  return [2 * app, 2 * app + 1];
}

export function orderingOf(endpoint: number): 'block' | 'skip' {
  return endpoint % 2 === 0 ? 'block' : 'skip';
}

/** In `finalStatusCodes` of every webhook. */
export const FINAL = 422;
const FAILED = 500;
const FAILED_ONCE_SHARE = 0.2;
const CLOSED_ONCE_SHARE = 0.02;
/** Of messages to webhooks that go on behind an exhausted one. */
const NEVER_SHARE = 0.015;
const SLOW_SHARE = 0.1;
const SLOW_MS = 2_000;
/** One key in so many is blocked at its webhook with `block`, when this share of its messages was sent. */
const BLOCKED_EVERY = 5;
const BLOCKED_AT_SHARE = 0.6;

/** What an endpoint makes of a message. `refuses`: with a final status. `fails`: at every attempt. */
type Fate = 'accepts' | 'fails once' | 'closes once' | 'refuses' | 'fails';

export interface OrderPlanOptions {
  /** Messages of a key. */
  perKey: number;
  /** Whether the endpoint resets every connection now. */
  isDown: (endpoint: number) => boolean;
  /** Whether every message is accepted now. */
  isCalm: () => boolean;
}

/** How the endpoints of the round answer: derived from the number of a message, the same in every run. */
export function createOrderPlan(options: OrderPlanOptions): Pick<Plan, 'replyTo'> {
  const { isDown, isCalm } = options;
  return {
    replyTo(n, endpoint, nth) {
      if (isCalm()) return { kind: 'status', status: 200, afterMs: 0 };
      if (isDown(endpoint)) return { kind: 'broken', how: 'reset' };
      const random = createRandom(n * ENDPOINTS + endpoint);
      const fate = fateOf(n, endpoint, { share: random(), perKey: options.perKey });
      if (fate === 'closes once' && nth === 1) return { kind: 'broken', how: 'closed' };
      const afterMs = random() < SLOW_SHARE ? Math.floor(random() * SLOW_MS) : 0;
      return { kind: 'status', status: statusOf(fate, nth), afterMs };
    },
  };
}

function statusOf(fate: Fate, nth: number): Extract<Reply, { kind: 'status' }>['status'] {
  switch (fate) {
    case 'accepts':
    case 'closes once':
      return 200;
    case 'fails once':
      return nth === 1 ? FAILED : 200;
    case 'refuses':
      return FINAL;
    case 'fails':
      return FAILED;
  }
}

function fateOf(
  n: number,
  endpoint: number,
  { share, perKey }: { share: number; perKey: number },
): Fate {
  const isBlocking = orderingOf(endpoint) === 'block';
  const key = keyOf(n);
  if (isBlocking && key % BLOCKED_EVERY === 0) {
    const isIt = placeOf(n) === Math.floor(perKey * BLOCKED_AT_SHARE);
    if (isIt) return key % (2 * BLOCKED_EVERY) === 0 ? 'refuses' : 'fails';
  }
  if (share < FAILED_ONCE_SHARE) return 'fails once';
  if (share < FAILED_ONCE_SHARE + CLOSED_ONCE_SHARE) return 'closes once';
  if (!isBlocking && share > 1 - NEVER_SHARE) return n % 2 === 0 ? 'refuses' : 'fails';
  return 'accepts';
}
