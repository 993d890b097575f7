import { Counter, Histogram, type Registry } from 'prom-client';

export interface RetryMetrics {
  parked: Counter<'delay'>;
  exhausted: Counter;
  observeLateness: (lateMs: number) => void;
  swept: Counter;
}

export function createRetryMetrics(registry: Registry): RetryMetrics {
  const registers = [registry];
  const lateness = new Histogram({
    name: 'posthorn_retry_lateness_seconds',
    help: 'From when a retry was due to when it was published.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3_600],
    registers,
  });
  return {
    parked: new Counter({
      name: 'posthorn_retries_parked_total',
      help: 'Failures put on a delay topic.',
      labelNames: ['delay'],
      registers,
    }),
    exhausted: new Counter({
      name: 'posthorn_deliveries_exhausted_total',
      help: 'Deliveries whose last attempt failed.',
      registers,
    }),
    observeLateness: (lateMs) => {
      lateness.observe(Math.max(0, lateMs) / 1_000);
    },
    swept: new Counter({
      name: 'posthorn_swept_records_total',
      help: 'Records published on behalf of a gateway that died or fell behind.',
      registers,
    }),
  };
}
