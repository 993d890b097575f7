import type { Attempt } from '@posthorn/domain/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import { Counter, Histogram, type Registry } from 'prom-client';

export interface DispatcherMetrics {
  finished: Counter<'result'>;
  /** Attempts put off by a webhook's own rate limit. */
  deferrals: Counter;
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
  const { duration, lag } = createHistograms(registers);
  const { finished, deferrals } = createCounters(registers);
  return {
    finished,
    deferrals,
    observe(due, { outcome, trigger, durationMs, startedAtMs }) {
      const isDelivered = outcome === 'success';
      attempts.inc({ outcome, trigger });
      duration.observe({ result: isDelivered ? 'success' : 'failure' }, durationMs / 1_000);
      lag.observe({ stage: trigger }, Math.max(0, startedAtMs - due.dueAtMs) / 1_000);
      if (isDelivered) finished.inc({ result: 'delivered' });
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
  return { duration, lag };
}

function createCounters(registers: Registry[]) {
  const finished = new Counter({
    name: 'posthorn_deliveries_finished_total',
    help: 'Deliveries that reached a final state in this process.',
    labelNames: ['result'],
    registers,
  });
  const deferrals = new Counter({
    name: 'posthorn_rate_limit_deferrals_total',
    help: "Attempts put off because of their webhook's rate limit.",
    registers,
  });
  return { finished, deferrals };
}
