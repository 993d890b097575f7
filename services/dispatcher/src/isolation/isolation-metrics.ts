import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { concurrencyOf } from './endpoint/endpoint.ts';
import { DEFERRAL_REASONS, type DeferralReason } from './defer-attempt.ts';
import type { Circuits } from './circuits/circuits.ts';
import type { Queues } from './queues/queues.ts';

/** Counts decisions of the gate. Attempts that are made at once or wait in memory are not counted. */
export interface IsolationMetrics {
  countDeferral: (because: DeferralReason) => void;
  countSlowLane: () => void;
}

export function createIsolationMetrics(registry: Registry): IsolationMetrics {
  const registers = [registry];
  const deferrals = new Counter({
    name: 'posthorn_deferrals_total',
    help: 'Attempts that were deferred to a delay topic, by reason. A deferral uses up no attempt.',
    labelNames: ['because'],
    registers,
  });
  startAtZero(deferrals, 'because', DEFERRAL_REASONS);
  const circuitDeferrals = new Counter({
    name: 'posthorn_circuit_breaker_deferrals_total',
    help: 'Attempts that were deferred because their circuit was open.',
    registers,
  });
  const spills = new Counter({
    name: 'posthorn_slow_lane_spills_total',
    help: 'Attempts moved to the slow lane because their endpoint takes a second or longer.',
    registers,
  });
  return {
    countDeferral(because) {
      deferrals.inc({ because });
      if (because === 'circuit') circuitDeferrals.inc();
    },
    countSlowLane: () => {
      spills.inc();
    },
  };
}

/** Gauges of the present, read at each scrape. */
export function watchIsolation(
  registry: Registry,
  { queues, circuits, limit }: { queues: Queues; circuits: Circuits; limit: number },
): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  };
  gauge('posthorn_deliveries_in_flight', 'Attempts under way.', queues.running);
  gauge(
    'posthorn_deliveries_waiting',
    'Attempts that wait in memory for their endpoint or for a free place.',
    queues.waiting,
  );
  gauge(
    'posthorn_delivery_concurrency_limit',
    'Attempts that may be under way at once.',
    () => limit,
  );
  watchCircuits(registry, circuits);
  watchConcurrency(registry, queues);
}

function watchCircuits(registry: Registry, circuits: Circuits): void {
  new Gauge({
    name: 'posthorn_circuit_breakers',
    help: 'Circuits of endpoints that failed recently, by state.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(circuits.count())) this.set({ state }, count);
    },
  });
}

/** A histogram of the present: it is reset and filled at each scrape. */
function watchConcurrency(registry: Registry, queues: Queues): void {
  new Histogram({
    name: 'posthorn_endpoint_concurrency_limit',
    help: 'Attempts that each endpoint with recent traffic may have at once.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
    registers: [registry],
    collect() {
      this.reset();
      for (const endpoint of queues.endpoints()) this.observe(concurrencyOf(endpoint));
    },
  });
}
