import { formatDelay } from '@posthorn/domain/schedule/retry-schedule.ts';
import type { DelayKind, DelayTopic } from '@posthorn/domain/records/topics.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface RetryMetrics {
  parked: Counter<'delay'>;
  finished: Counter<'result'>;
  observeLateness: (topic: DelayTopic, lateMs: number) => void;
  swept: Counter;
}

/** Both kinds have a delay of 5 s, so the delay alone does not tell their topics apart. */
const DELAY_LABELS = ['delay', 'kind'] as const;

function labelsOf({ delayMs, kind }: DelayTopic): { delay: string; kind: DelayKind } {
  return { delay: formatDelay(delayMs), kind };
}

export function createRetryMetrics(registry: Registry): RetryMetrics {
  const registers = [registry];
  const lateness = new Histogram({
    name: 'posthorn_retry_lateness_seconds',
    help: 'From when a retry or a deferred attempt was due to when it was published.',
    labelNames: DELAY_LABELS,
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
    observeLateness: (topic, lateMs) => {
      lateness.observe(labelsOf(topic), Math.max(0, lateMs) / 1_000);
    },
    swept: new Counter({
      name: 'posthorn_swept_records_total',
      help: 'Records published on behalf of a gateway that died or fell behind.',
      registers,
    }),
  };
}

const LAG = 'posthorn_kafka_consumer_lag_records';

/** What waits on each delay topic, read when somebody asks. */
export function showParked(
  registry: Registry,
  delayTopics: ReadonlyMap<string, DelayTopic>,
  overdueMs: (topic: string) => number,
): void {
  const registers = [registry];
  new Gauge({
    name: 'posthorn_retry_pending',
    help: 'Records on the delay topic in the partitions that this process reads, not yet released.',
    labelNames: DELAY_LABELS,
    registers,
    async collect() {
      const lag = await registry.getSingleMetric(LAG)?.get();
      for (const { labels, value } of lag?.values ?? []) {
        const topic = delayTopics.get(String(labels.topic));
        if (topic) this.set(labelsOf(topic), value);
      }
    },
  });
  new Gauge({
    name: 'posthorn_retry_overdue_seconds',
    help: 'Since when the oldest record in hand was due; 0 when none is in hand: see the lag for those.',
    labelNames: DELAY_LABELS,
    registers,
    collect() {
      for (const [name, topic] of delayTopics) {
        this.set(labelsOf(topic), overdueMs(name) / 1_000);
      }
    },
  });
}
