import { endedAtMs, type Attempt } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { CircuitBreakers } from './circuit-breakers.ts';
import type { EndpointLanes } from './endpoint-lanes.ts';

export interface DispatcherMetrics {
  finished: Counter<'result'>;
  /** Why an attempt was put off without being used up. */
  deferrals: { rateLimit: Counter; circuit: Counter; backlog: Counter };
  spills: Counter;
  /** Counts one attempt with its duration and how late it was begun. */
  observe: (due: DueAttempt, attempt: Attempt) => void;
}

export function createDispatcherMetrics(registry: Registry): DispatcherMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: 'posthorn_delivery_attempts_total',
    help: 'Attempts made.',
    labelNames: ['outcome', 'trigger'],
    registers,
  });
  const { duration, lag, completion } = createHistograms(registers);
  const counters = createCounters(registers);
  return {
    ...counters,
    observe(due, attempt) {
      const { outcome, trigger, durationMs, startedAtMs } = attempt;
      const isDelivered = outcome === 'success';
      attempts.inc({ outcome, trigger });
      duration.observe({ result: isDelivered ? 'success' : 'failure' }, durationMs / 1_000);
      lag.observe({ stage: trigger }, Math.max(0, startedAtMs - due.dueAtMs) / 1_000);
      if (!isDelivered) return;
      counters.finished.inc({ result: 'delivered' });
      const wholeMs = Math.max(0, endedAtMs(attempt) - due.createdAtMs);
      completion.observe({ result: 'delivered' }, wholeMs / 1_000);
    },
  };
}

function createHistograms(registers: Registry[]) {
  const duration = new Histogram({
    name: 'posthorn_delivery_attempt_duration_seconds',
    help: 'Time of the whole exchange with the endpoint.',
    labelNames: ['result'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30],
    registers,
  });
  const lag = new Histogram({
    name: 'posthorn_delivery_lag_seconds',
    help: 'From when the attempt was due to when it began.',
    labelNames: ['stage'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3_600],
    registers,
  });
  const completion = new Histogram({
    name: 'posthorn_delivery_completion_seconds',
    help: 'From the acceptance of the message to the end of its delivery.',
    labelNames: ['result'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 1, 10, 60, 600, 3_600, 21_600, 86_400, 259_200],
    registers,
  });
  return { duration, lag, completion };
}

function createCounters(registers: Registry[]) {
  const finished = new Counter({
    name: 'posthorn_deliveries_finished_total',
    help: 'Deliveries that reached a final state in this process.',
    labelNames: ['result'],
    registers,
  });
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });
  return {
    finished,
    deferrals: {
      rateLimit: counter(
        'posthorn_rate_limit_deferrals_total',
        "Attempts put off because of their webhook's rate limit.",
      ),
      circuit: counter(
        'posthorn_circuit_breaker_deferrals_total',
        'Attempts put off because the circuit of their endpoint was open.',
      ),
      backlog: counter(
        'posthorn_backlog_deferrals_total',
        'Attempts put off because their endpoint had no room in the slow lane either.',
      ),
    },
    spills: counter(
      'posthorn_slow_lane_spills_total',
      'Attempts moved to the slow lane because their endpoint had no room in the fast one.',
    ),
  };
}

/** What the parts of the dispatcher hold at the moment of a scrape. */
export function watchLoad(
  registry: Registry,
  parts: { lanes: EndpointLanes; circuits: CircuitBreakers; limit: number },
): void {
  const registers = [registry];
  new Gauge({
    name: 'posthorn_deliveries_in_flight',
    help: 'Attempts under way.',
    registers,
    collect() {
      this.set(parts.lanes.running());
    },
  });
  new Gauge({
    name: 'posthorn_delivery_concurrency_limit',
    help: 'Attempts that may be under way at once.',
    registers,
  }).set(parts.limit);
  new Gauge({
    name: 'posthorn_circuit_breakers',
    help: 'Circuits of endpoints that failed of late, by state.',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(parts.circuits.count())) {
        this.set({ state }, count);
      }
    },
  });
}
