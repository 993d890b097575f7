import { beforeEach, describe, expect, it } from '@jest/globals';
import { createEndpointFlows } from '@posthorn/platform/redis/endpoint-flows.ts';
import { duringTests } from '../../../../test/support/during-tests.ts';
import {
  count,
  createQueueHarness,
  type Entered,
  EPOCH_MS,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { concurrencyOf, type Endpoint, paceOf } from './endpoint.ts';

/** The partition of all webhooks. */
const OURS = new Set([0]);
const perEndpoint = { floor: 1, start: 16, ceiling: 64 };

describe.each(REDIS_KINDS)('two dispatchers with %s', (_kind, open) => {
  const env = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());
  let former: QueueHarness;
  let next: QueueHarness;
  let round = 0;

  beforeEach(async () => {
    round += 1;
    [former, next] = [start(), start()];
    await former.handover.own(OURS);
  });

  function start(redis = store.redis): QueueHarness {
    const prefix = `${env.REDIS_PREFIX}${round}:`;
    // The clocks of all harnesses stand still, at the same time.
    const flows = createEndpointFlows(redis, prefix, () => EPOCH_MS + former.time.nowMs());
    return createQueueHarness({ limits: { perEndpoint }, flows });
  }

  async function enter(harness: QueueHarness, id: string, times: number): Promise<Entered[]> {
    const entered = await harness.enter(id, 'first', times);
    await eventually('the reply', () => harness.queues.endpoints().has(id));
    return entered;
  }

  function known({ queues }: QueueHarness, id: string): Endpoint {
    const endpoint = queues.endpoints().get(id);
    if (!endpoint) throw new Error(`${id} is not known`);
    return endpoint;
  }

  it('hand over what one has learned about an endpoint, with its partition', async () => {
    const refused = await enter(former, 'a', 8);
    await former.finish(refused, { outcome: 'http_429', statusCode: 429 });
    former.handover.tick();
    await former.handover.own(new Set());
    await next.handover.own(OURS);
    await enter(next, 'a', 1);
    await enter(next, 'unknown', 1);
    const learned = concurrencyOf(known(next, 'a'));
    expect(learned).toBeLessThan(perEndpoint.start);
    expect(paceOf(known(next, 'a'), next.time.nowMs())).not.toBeNull();
    expect(concurrencyOf(known(next, 'unknown'))).toBe(perEndpoint.start);
    // And back again.
    next.handover.tick();
    await former.handover.own(OURS);
    await enter(former, 'a', 1);
    expect(concurrencyOf(known(former, 'a'))).toBe(learned);
  });

  it('hand over a pause that an endpoint asked for', async () => {
    const refused = await enter(former, 'a', 1);
    const report = { outcome: 'http_429', statusCode: 429, retryAfterMs: 20_000 } as const;
    await former.finish(refused, report);
    await next.handover.own(OURS);
    expect(count(await enter(next, 'a', 1)).waiting).toBe(1);
  });

  it('begin anew without Redis', async () => {
    const away = store.connect();
    away.disconnect();
    const cutOff = start(away);
    await cutOff.handover.own(OURS);
    expect(count(await enter(cutOff, 'a', 1)).started).toBe(1);
    expect(concurrencyOf(known(cutOff, 'a'))).toBe(perEndpoint.start);
  });
});
