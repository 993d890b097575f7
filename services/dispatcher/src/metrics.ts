import { type Attempt, endedAtMs, OUTCOMES, TRIGGERS } from '@posthorn/domain/delivery/delivery.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Histogram, type Registry } from 'prom-client';

export interface DispatcherMetrics {
  finished: Counter<'result'>;
  /** Counts one attempt, its duration and its lag; a success also as the end of its delivery. */
  observe: (due: DueAttempt, attempt: Attempt) => void;
}

export function createDispatcherMetrics(registry: Registry): DispatcherMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: 'posthorn_delivery_attempts_total',
    help: 'Attempts made, by outcome and trigger.',
    labelNames: ['outcome', 'trigger'],
    registers,
  });
  for (const outcome of OUTCOMES) {
    for (const trigger of TRIGGERS) attempts.inc({ outcome, trigger }, 0);
  }
  const { duration, lag, completion } = createHistograms(registers);
  const finished = new Counter({
    name: 'posthorn_deliveries_finished_total',
    help: 'Deliveries that this process brought to a final state.',
    labelNames: ['result'],
    registers,
  });
  startAtZero(finished, 'result', ['delivered', 'cancelled']);
  return {
    finished,
    observe(due, attempt) {
      const { outcome, trigger, durationMs, startedAtMs } = attempt;
      const isDelivered = outcome === 'success';
      attempts.inc({ outcome, trigger });
      duration.observe({ result: isDelivered ? 'success' : 'failure' }, durationMs / 1_000);
      lag.observe({ stage: trigger }, Math.max(0, startedAtMs - due.dueAtMs) / 1_000);
      if (!isDelivered) return;
      finished.inc({ result: 'delivered' });
      const wholeMs = Math.max(0, endedAtMs(attempt) - due.createdAtMs);
      completion.observe({ result: 'delivered' }, wholeMs / 1_000);
    },
  };
}

function createHistograms(registers: Registry[]) {
  const duration = new Histogram({
    name: 'posthorn_delivery_attempt_duration_seconds',
    help: 'Duration of the whole exchange with the endpoint, from the look-up of its host to the end of its response.',
    labelNames: ['result'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30],
    registers,
  });
  const lag = new Histogram({
    name: 'posthorn_delivery_lag_seconds',
    help: 'Time from when an attempt was due to when it began.',
    labelNames: ['stage'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3_600],
    registers,
  });
  const completion = new Histogram({
    name: 'posthorn_delivery_completion_seconds',
    help: 'Time from the acceptance of a message to the end of its delivery.',
    labelNames: ['result'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 1, 10, 60, 600, 3_600, 21_600, 86_400, 259_200],
    registers,
  });
  return { duration, lag, completion };
}
