import { beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { createEndpoint, type Endpoint } from './isolation/endpoint.ts';
import { DEFERRAL_REASONS } from './isolation/gate.ts';
import { createDispatcherMetrics, type DispatcherMetrics, watchIsolation } from './metrics.ts';

describe('isolation metrics', () => {
  let registry: Registry;
  let metrics: DispatcherMetrics;
  let endpoints: Map<string, Endpoint>;

  beforeEach(() => {
    registry = new Registry();
    metrics = createDispatcherMetrics(registry);
    endpoints = new Map();
    watchIsolation(registry, {
      queues: {
        running: () => 3,
        waiting: () => 5,
        endpoints: () => endpoints,
      },
      circuits: {
        count: () => ({ closed: 4, open: 2, half_open: 1 }),
      },
      limit: 2_050,
    });
  });

  async function shown(name: string): Promise<Map<string, number>> {
    const found = (await registry.getMetricsAsJSON()).find((metric) => metric.name === name);
    return new Map(
      found?.values.map(({ labels, value }) => [Object.values(labels).join(), value]) ?? [],
    );
  }

  describe('deferrals', () => {
    it('are exposed for every reason before the first deferral, and for no other', async () => {
      const all = await shown('posthorn_deferrals_total');
      expect([...all]).toEqual(DEFERRAL_REASONS.map((reason) => [reason, 0]));
    });

    it('are counted by reason, and those by circuits in a counter of their own as well', async () => {
      for (const because of DEFERRAL_REASONS) metrics.countDeferral(because);
      metrics.countDeferral('circuit');
      const all = await shown('posthorn_deferrals_total');
      expect([all.get('circuit'), all.get('hold'), all.size]).toEqual([
        2,
        1,
        DEFERRAL_REASONS.length,
      ]);
      expect(await shown('posthorn_circuit_breaker_deferrals_total')).toEqual(new Map([['', 2]]));
    });
  });

  it('counts attempts that move to the slow lane', async () => {
    metrics.countSlowLane();
    expect(await shown('posthorn_slow_lane_spills_total')).toEqual(new Map([['', 1]]));
  });

  describe('a scrape', () => {
    it('shows the attempts under way and waiting now, and the circuits by state', async () => {
      expect(await shown('posthorn_deliveries_in_flight')).toEqual(new Map([['', 3]]));
      expect(await shown('posthorn_deliveries_waiting')).toEqual(new Map([['', 5]]));
      expect(await shown('posthorn_delivery_concurrency_limit')).toEqual(new Map([['', 2_050]]));
      expect(await shown('posthorn_circuit_breakers')).toEqual(
        new Map([
          ['closed', 4],
          ['open', 2],
          ['half_open', 1],
        ]),
      );
    });

    it('shows the limits of the current endpoints, not those of earlier scrapes', async () => {
      for (const start of [1, 16, 16]) {
        const bounds = { floor: 1, start, ceiling: 64 };
        const webhookId = `wh_${endpoints.size}`;
        const of = { webhookId, companyId: 'comp_1', url: 'https://one.example/' };
        endpoints.set(webhookId, createEndpoint(of, bounds));
      }
      await registry.metrics();
      const text = await registry.metrics();
      expect(text).toContain('posthorn_endpoint_concurrency_limit_count 3');
      expect(text).toContain('posthorn_endpoint_concurrency_limit_sum 33');
      expect(text).toContain('posthorn_endpoint_concurrency_limit_bucket{le="8"} 1');
    });
  });
});
