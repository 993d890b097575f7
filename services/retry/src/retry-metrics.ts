import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface RetryMetrics {
  parked: Counter<'delay'>;
  finished: Counter<'result'>;
  observeLateness: (delay: string, lateMs: number) => void;
  swept: Counter;
}

export function createRetryMetrics(registry: Registry): RetryMetrics {
  const registers = [registry];
  const lateness = new Histogram({
    name: 'posthorn_retry_lateness_seconds',
    help: 'From when a retry was due to when it was published.',
    labelNames: ['delay'],
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
    finished: new Counter({
      name: 'posthorn_deliveries_finished_total',
      help: 'Deliveries that ended here: exhausted, or cancelled when their retry was due.',
      labelNames: ['result'],
      registers,
    }),
    observeLateness: (delay, lateMs) => {
      lateness.observe({ delay }, Math.max(0, lateMs) / 1_000);
    },
    swept: new Counter({
      name: 'posthorn_swept_records_total',
      help: 'Records published on behalf of a gateway that died or fell behind.',
      registers,
    }),
  };
}

const LAG = 'posthorn_kafka_consumer_lag_records';

/** What waits on each delay topic, read when somebody asks. `delayByTopic`: topic → `5m`. */
export function showParked(
  registry: Registry,
  delayByTopic: ReadonlyMap<string, string>,
  overdueMs: (topic: string) => number,
): void {
  const registers = [registry];
  new Gauge({
    name: 'posthorn_retry_pending',
    help: 'Records on the delay topic in the partitions that this process reads, not yet released.',
    labelNames: ['delay'],
    registers,
    async collect() {
      const lag = await registry.getSingleMetric(LAG)?.get();
      for (const { labels, value } of lag?.values ?? []) {
        const delay = delayByTopic.get(String(labels.topic));
        if (delay !== undefined) this.set({ delay }, value);
      }
    },
  });
  new Gauge({
    name: 'posthorn_retry_overdue_seconds',
    help: 'Since when the oldest retry in hand was due; 0 when none is in hand: see the lag for those.',
    labelNames: ['delay'],
    registers,
    collect() {
      for (const [topic, delay] of delayByTopic) this.set({ delay }, overdueMs(topic) / 1_000);
    },
  });
}
