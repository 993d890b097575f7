import { describe, expect, it } from '@jest/globals';
import {
  createOrderPlan,
  ENDPOINTS,
  endpointsOf,
  FINAL,
  keyOf,
  KEYS,
  placeOf,
} from './order-plan.ts';

const PER_KEY = 100;
const [BLOCK, SKIP] = [0, 1];

function open() {
  const state = { down: new Set<number>(), isCalm: false };
  const plan = createOrderPlan({
    perKey: PER_KEY,
    isDown: (endpoint) => state.down.has(endpoint),
    isCalm: () => state.isCalm,
  });
  const statusOf = (n: number, endpoint: number, nth: number): number => {
    const reply = plan.replyTo(n, endpoint, nth);
    return reply.kind === 'status' ? reply.status : 0;
  };
  return { state, plan, statusOf };
}

/** The messages of the first app. */
const messages = Array.from({ length: PER_KEY * KEYS }, (_, n) => n).filter(
  (n) => endpointsOf(keyOf(n))[0] === BLOCK,
);

describe('the endpoints of the round of order', () => {
  it('fail a fifth of all messages once, and close some connections', () => {
    const { statusOf } = open();
    const first = messages.map((n) => statusOf(n, SKIP, 1));
    const share = (status: number): number =>
      first.filter((each) => each === status).length / first.length;
    expect(share(500)).toBeCloseTo(0.2, 1);
    expect(share(0)).toBeCloseTo(0.02, 1);
    expect(messages.filter((n) => statusOf(n, SKIP, 2) === 500).length).toBeLessThan(
      messages.length * 0.02,
    );
  });

  it('answer the same in every run', () => {
    const [one, other] = [open(), open()];
    for (const n of messages.slice(0, 500)) {
      expect(one.plan.replyTo(n, SKIP, 1)).toEqual(other.plan.replyTo(n, SKIP, 1));
    }
  });

  it('refuse one message of each fifth key for good at the webhook that blocks', () => {
    const { statusOf } = open();
    const never = messages.filter((n) => statusOf(n, BLOCK, 9) !== 200);
    expect(never.map((n) => keyOf(n))).toEqual(Array.from({ length: 20 }, (_, index) => index * 5));
    expect(new Set(never.map((n) => placeOf(n)))).toEqual(new Set([60]));
    expect(new Set(never.map((n) => statusOf(n, BLOCK, 9)))).toEqual(new Set([FINAL, 500]));
  });

  it('reset everything while they are down, and accept everything in the calm after it', () => {
    const { state, plan, statusOf } = open();
    state.down.add(BLOCK);
    expect(plan.replyTo(0, BLOCK, 1)).toEqual({ kind: 'broken', how: 'reset' });
    state.isCalm = true;
    const endpoints = Array.from({ length: ENDPOINTS }, (_, endpoint) => endpoint);
    expect(endpoints.map((endpoint) => statusOf(12_000, endpoint, 1))).toEqual([
      200, 200, 200, 200,
    ]);
  });
});
