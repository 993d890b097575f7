import { beforeEach, describe, expect, it } from '@jest/globals';
import { type EndpointFlow, urlHashOf } from '@posthorn/platform/redis/endpoint-flows.ts';
import {
  count,
  createQueueHarness,
  type QueueHarness,
} from '../../../../test/support/isolation/queue-harness.ts';
import { concurrencyOf, createEndpoint, type Endpoint, isSlow, paceOf } from './endpoint.ts';
import { Handover, MAX_REPORTED_BYTES } from './handover.ts';

describe('report flows', () => {
  const BOUNDS = { floor: 1, start: 16, ceiling: 64 };
  const URL = 'https://one.example/';
  const EPOCH_MS = 1_700_000_000_000;

  let endpoints: Endpoint[];
  let told: Map<string, EndpointFlow>[];
  let clockMs: number;
  let flows: Handover;

  beforeEach(() => {
    [endpoints, told, clockMs] = [[], [], 1_000];
    flows = new Handover({
      known: () => ({
        endpoints: () => new Map(endpoints.map((each) => [each.webhookId, each])),
        forgetOthers: () => undefined,
        applyPauses: () => undefined,
      }),
      flows: {
        readAll: (ids) => Promise.resolve(ids.map(() => null)),
        report: (news) => void told.push(new Map(news)),
        reportPause: () => undefined,
        takeOverPauses: (read) => Promise.resolve({ found: new Map(), read: [...read] }),
      },
      partitionOf: (webhookId) => (webhookId === 'of another' ? 2 : 1),
      startConcurrency: BOUNDS.start,
      ceiling: BOUNDS.ceiling,
      // Whole milliseconds, as Date.now() gives them; those of performance.now() are not.
      nowMs: () => EPOCH_MS + Math.floor(clockMs),
      monotonicMs: () => clockMs,
      inNextLoop: (act) => void setImmediate(act),
      wakeAfter: () => () => undefined,
    });
    void flows.own(new Set([1]));
  });

  function known(webhookId: string, as: Partial<Endpoint> = {}): Endpoint {
    const endpoint = createEndpoint({ webhookId, companyId: 'comp_1', url: URL }, BOUNDS);
    endpoints.push(Object.assign(endpoint, as));
    return endpoint;
  }

  function pass(seconds: number): void {
    for (let n = 0; n < seconds; n += 1) {
      clockMs += 1_000;
      flows.tick();
    }
  }

  const toldIds = (): string[][] => told.map((news) => [...news.keys()]);

  describe('the report of endpoint flows', () => {
    it('leaves out endpoints that are treated like a new one', () => {
      known('a');
      pass(300);
      expect(told).toEqual([]);
    });

    it('contains the concurrency, its ceiling, the rate and the pause of each', () => {
      known('a', { rateLimitPerSecond: 2.25, pausedUntilMs: clockMs + 5_000 });
      flows.tick();
      const flow = {
        concurrency: 16,
        ceiling: 64,
        ratePerSecond: 2.3,
        heldUntilMs: EPOCH_MS + 6_000,
      };
      expect(told).toHaveLength(1);
      expect(told[0]?.get('a')).toMatchObject(flow);
    });

    it('is sent when it changes, and repeated before Redis would expire it', () => {
      const endpoint = known('a', { rateLimitPerSecond: 2 });
      pass(30);
      expect(told).toHaveLength(1);
      endpoint.rateLimitPerSecond = 3;
      pass(30);
      expect(told).toHaveLength(2);
      pass(31);
      expect(told).toHaveLength(3);
    });

    it('is sent when the endpoint turns slow, and when it is fast again', () => {
      const endpoint = known('a', { slowUntilMs: 1e9 });
      pass(30);
      endpoint.slowUntilMs = 0;
      pass(1);
      expect(told.map((news) => news.get('a')?.learned.isSlow)).toEqual([true, false]);
    });

    it('is sent as well when the endpoint is treated like a new one again', () => {
      const endpoint = known('a', { rateLimitPerSecond: 2 });
      flows.tick();
      endpoint.rateLimitPerSecond = null;
      pass(1);
      const flow = { concurrency: 16, ceiling: 64, ratePerSecond: null, heldUntilMs: null };
      expect(told.at(-1)?.get('a')).toMatchObject(flow);
    });

    it('does not change because of fractions of a millisecond between two clocks', () => {
      known('a', { pausedUntilMs: clockMs + 50_000 });
      for (let n = 0; n < 20; n += 1) {
        clockMs += 1_000.3;
        flows.tick();
      }
      expect(told).toHaveLength(1);
    });

    it('leaves out endpoints whose partition has gone', () => {
      known('of another', { rateLimitPerSecond: 2 });
      flows.tick();
      expect(told).toEqual([]);
    });

    it('contains a thousand endpoints at most, and the rest a second later', () => {
      for (let n = 0; n < 1_500; n += 1) known(`wh_${n}`, { rateLimitPerSecond: 1 });
      pass(3);
      expect(toldIds().map((ids) => ids.length)).toEqual([1_000, 500]);
    });

    it('reaches every endpoint although the first ones change all the time', () => {
      for (let n = 0; n < 1_500; n += 1) known(`wh_${n}`, { rateLimitPerSecond: 1 });
      flows.tick();
      for (const endpoint of endpoints) endpoint.rateLimitPerSecond = 2;
      pass(1);
      expect(new Set(toldIds().flat()).size).toBe(1_500);
    });

    it('is not remembered for endpoints that are gone', () => {
      known('a', { rateLimitPerSecond: 2 });
      flows.tick();
      const gone = endpoints.splice(0);
      pass(181);
      endpoints.push(
        ...gone.map((endpoint) => Object.assign(endpoint, { rateLimitPerSecond: null })),
      );
      pass(1);
      expect(told).toHaveLength(1);
    });

    it('remembers a limited number of endpoints', () => {
      for (let n = 0; n < 21_000; n += 1) known(`wh_${n}`, { pausedUntilMs: 60_000 });
      for (let n = 0; n < 25; n += 1) {
        clockMs += 1_000;
        flows.tick();
      }
      expect(flows.reportedBytes()).toBe(MAX_REPORTED_BYTES);
    });
  });
});

describe('an endpoint whose partition comes from another process', () => {
  const BOUNDS = { floor: 1, start: 16, ceiling: 64 };
  const RETRY_LATER = { outcome: 'http_429', statusCode: 429, retryAfterMs: 1_000 } as const;

  let stored: Map<string, EndpointFlow>;
  let reads: string[][];
  let readAll: (ids: readonly string[]) => Promise<(EndpointFlow | null)[]>;
  let former: QueueHarness;
  let next: QueueHarness;

  function start(perEndpoint = BOUNDS): QueueHarness {
    return createQueueHarness({
      limits: { perEndpoint },
      flows: {
        report(flows) {
          for (const [id, flow] of flows) stored.set(id, flow);
        },
        readAll(ids) {
          reads.push([...ids]);
          return readAll(ids);
        },
        reportPause: () => undefined,
        takeOverPauses: (read) => Promise.resolve({ found: new Map(), read: [...read] }),
      },
    });
  }

  beforeEach(async () => {
    stored = new Map();
    reads = [];
    readAll = (ids) => Promise.resolve(ids.map((id) => stored.get(id) ?? null));
    [former, next] = [start(), start()];
    await former.handover.own(new Set([0]));
  });

  /** What the former owner has learned from these refusals, once it has reported it. */
  async function refusedAtFormer(id: string): Promise<Endpoint> {
    await former.finish(await former.enter(id, 'first', 8), RETRY_LATER);
    former.handover.tick();
    return known(former, id);
  }

  function known({ queues }: QueueHarness, id: string): Endpoint {
    const endpoint = queues.endpoints().get(id);
    if (!endpoint) throw new Error(`${id} is not known`);
    return endpoint;
  }

  it('begins with the limit and the rate of its former owner', async () => {
    const before = await refusedAtFormer('a');
    await next.handover.own(new Set([0]));
    await next.enter('a', 'first');
    const here = known(next, 'a');
    expect(concurrencyOf(here)).toBe(concurrencyOf(before));
    expect(concurrencyOf(here)).toBeLessThan(BOUNDS.start);
    const nowMs = former.time.nowMs();
    expect(paceOf(here, next.time.nowMs())).toBe(paceOf(before, nowMs));
    expect(paceOf(here, next.time.nowMs())).not.toBeNull();
  });

  it('is slow when it was, until an attempt shows the opposite', async () => {
    const [slow] = await former.enter('a', 'first');
    await former.pass(1_500);
    former.handover.tick();
    await former.finish(slow ? [slow] : []);
    await next.handover.own(new Set([0]));
    const [one, two] = await next.enter('a', 'first', 2);
    expect(isSlow(known(next, 'a'), next.time.nowMs())).toBe(true);
    expect(two?.admission?.kind).toBe('slow_lane');
    await next.finish(one ? [one] : []);
    expect(isSlow(known(next, 'a'), next.time.nowMs())).toBe(false);
  });

  it('gets no more attempts at once than the new owner allows', async () => {
    next = start({ floor: 1, start: 2, ceiling: 3 });
    const flow = { concurrency: 1, ceiling: 64, ratePerSecond: null, heldUntilMs: null };
    const limit = { value: 60, slowStartThreshold: null, lowestMs: null };
    const learned = {
      urlHash: urlHashOf('https://one.example/'),
      isSlow: false,
      quickestMs: 1,
      limit,
      rate: null,
    };
    stored.set('a', { ...flow, learned });
    await next.handover.own(new Set([0]));
    expect(count(await next.enter('a', 'first', 5)).started).toBe(3);
  });

  it('is a new one at another URL', async () => {
    await refusedAtFormer('a');
    await next.handover.own(new Set([0]));
    await next.enter('a', 'first', 1, { url: 'https://two.example/' });
    expect(concurrencyOf(known(next, 'a'))).toBe(BOUNDS.start);
  });

  it('is read once for all attempts that wait, and not again while it is known', async () => {
    await next.handover.own(new Set([0]));
    await next.enter('a', 'first', 5);
    await next.enter('a', 'first', 5);
    expect(reads).toEqual([['a']]);
  });

  it('is not read when its partition has been here for three minutes, or is not here', async () => {
    await next.enter('a', 'first');
    await next.handover.own(new Set([0]));
    await next.handover.own(new Set([0]));
    next.time.jump(180_000);
    expect(count(await next.enter('b', 'first')).started).toBe(1);
    expect(reads).toEqual([]);
  });

  it('is a new one after a tenth of a second without a reply, and at once without Redis', async () => {
    await refusedAtFormer('a');
    await next.handover.own(new Set([0]));
    readAll = () => new Promise(() => undefined);
    const entered = await next.enter('a', 'first', 2);
    await next.pass(99);
    expect(count(entered).waiting).toBe(2);
    await next.pass(1);
    await next.nextLoop();
    expect(count(entered).started).toBe(2);
    readAll = () => Promise.reject(new Error('away'));
    await next.enter('b', 'first');
    expect(concurrencyOf(known(next, 'b'))).toBe(BOUNDS.start);
  });

  it('keeps at its owner what was learned when other partitions come and go', async () => {
    const before = await refusedAtFormer('a');
    for (const partitions of [[0, 1], [0], [0, 2]]) {
      await former.handover.own(new Set(partitions));
      expect(known(former, 'a')).toBe(before);
    }
    expect(concurrencyOf(before)).toBeLessThan(BOUNDS.start);
    await former.enter('a', 'first');
    expect(reads).toEqual([['a']]);
  });

  it('is not reported by its former owner any more, and forgotten there', async () => {
    await refusedAtFormer('a');
    stored.clear();
    const [running] = await former.enter('b', 'first', 1);
    await former.handover.own(new Set());
    expect([...former.queues.endpoints().keys()]).toEqual(['b']);
    await former.finish(running ? [running] : [], RETRY_LATER);
    former.handover.tick();
    expect(stored.size).toBe(0);
  });
});
