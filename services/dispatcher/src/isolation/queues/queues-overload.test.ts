import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  count,
  createQueueHarness,
  type Entered,
  type QueueHarness,
} from '../../../../../test/support/isolation/queue-harness.ts';

let harness: QueueHarness;

/** Four places at each endpoint, ten of the dispatcher; memory is full and this process has no CPU time left. */
beforeEach(() => {
  const perEndpoint = { floor: 4, start: 4, ceiling: 4 };
  harness = createQueueHarness({ limits: { perEndpoint, fast: 10 } });
  harness.overload.is = true;
});

async function backlogOf(webhookIds: readonly string[], attempts: number): Promise<Entered[]> {
  const all = await Promise.all(
    webhookIds.map((webhookId) => harness.enter(webhookId, 'first', attempts)),
  );
  return all.flat();
}

/** Ends what has begun every half second, for 40 s: longer than an attempt may wait. */
async function serve(all: readonly Entered[]): Promise<void> {
  let left = [...all];
  for (let passedMs = 0; passedMs < 40_000; passedMs += 500) {
    await harness.pass(500);
    const begun = new Set(left.filter(({ place }) => place !== undefined));
    await harness.finish([...begun]);
    left = left.filter((each) => !begun.has(each));
  }
}

describe('an overloaded dispatcher', () => {
  it('keeps the backlog that all endpoints have, however long it is', async () => {
    const all = await backlogOf(['a', 'b'], 1_000);
    harness.maxWait.ms = 1_000;
    await serve(all);
    expect(count(all)).toMatchObject({ deferred: 0, slowLane: 0 });
  });

  it('defers the backlog of one endpoint that is far longer than those of others', async () => {
    const many = await backlogOf(['a'], 1_000);
    const others = await backlogOf(['b', 'c', 'd'], 10);
    harness.maxWait.ms = 1_000;
    await serve([...many, ...others]);
    expect(count(many).deferred).toBeGreaterThan(500);
    expect(count(others).deferred).toBe(0);
  });

  it('defers it as usual once it has CPU time again', async () => {
    const all = await backlogOf(['a', 'b'], 1_000);
    harness.maxWait.ms = 1_000;
    harness.overload.is = false;
    await serve(all);
    expect(count(all).deferred).toBeGreaterThan(1_000);
  });
});
