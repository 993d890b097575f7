import { beforeEach, describe, expect, it } from '@jest/globals';
import type { EndpointFlow } from '@posthorn/platform/redis/endpoint-flows.ts';
import { createEndpoint, type Endpoint } from './endpoint.ts';
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
      expect(told).toEqual([new Map([['a', flow]])]);
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

    it('is sent as well when the endpoint is treated like a new one again', () => {
      const endpoint = known('a', { rateLimitPerSecond: 2 });
      flows.tick();
      endpoint.rateLimitPerSecond = null;
      pass(1);
      const flow = { concurrency: 16, ceiling: 64, ratePerSecond: null, heldUntilMs: null };
      expect(told.at(-1)).toEqual(new Map([['a', flow]]));
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
