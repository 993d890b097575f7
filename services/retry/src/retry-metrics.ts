import { formatDelay } from '@posthorn/domain/delivery/schedule.ts';
import type { DelayKind, DelayTopic } from '@posthorn/domain/records/topics.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface RetryMetrics {
  parked: Counter<'delay'>;
  finished: Counter<'result'>;
  observeLateness: (topic: DelayTopic, lateMs: number) => void;
  swept: Counter;
}

/** Two topics, one of each kind, may have the same delay. */
const DELAY_LABELS = ['delay', 'kind'] as const;

function labelsOf({ delayMs, kind }: DelayTopic): { delay: string; kind: DelayKind } {
  return { delay: formatDelay(delayMs), kind };
}

/** `schedule` has the delays of retries in milliseconds. */
export function createRetryMetrics(registry: Registry, schedule: readonly number[]): RetryMetrics {
  const registers = [registry];
  const lateness = new Histogram({
    name: 'posthorn_retry_lateness_seconds',
    help: 'Time between when a retry or a deferred attempt was due and when it was published.',
    labelNames: DELAY_LABELS,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3_600],
    registers,
  });
  const parked = new Counter({
    name: 'posthorn_retries_parked_total',
    help: 'Failed attempts whose next attempt was written to a delay topic.',
    labelNames: ['delay'],
    registers,
  });
  startAtZero(parked, 'delay', schedule.map(formatDelay));
  const finished = new Counter({
    name: 'posthorn_deliveries_finished_total',
    help: 'Deliveries that this process brought to a final state.',
    labelNames: ['result'],
    registers,
  });
  startAtZero(finished, 'result', ['exhausted', 'cancelled']);
  const swept = new Counter({
    name: 'posthorn_swept_records_total',
    help: 'Records published for a gateway that crashed or fell behind.',
    registers,
  });
  return {
    parked,
    finished,
    observeLateness: (topic, lateMs) => {
      lateness.observe(labelsOf(topic), Math.max(0, lateMs) / 1_000);
    },
    swept,
  };
}

const LAG = 'posthorn_kafka_consumer_lag_records';

/** Shows what waits on each delay topic, computed at each scrape. */
export function showParked(
  registry: Registry,
  delayTopics: ReadonlyMap<string, DelayTopic>,
  overdueMs: (topic: string) => number,
): void {
  const registers = [registry];
  new Gauge({
    name: 'posthorn_retry_pending',
    help: 'Records that are not released yet, on the partitions of the delay topic that this process reads.',
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
    help: 'Lateness of the oldest record in memory; 0 when none is in memory (see the consumer lag).',
    labelNames: DELAY_LABELS,
    registers,
    collect() {
      for (const [name, topic] of delayTopics) {
        this.set(labelsOf(topic), overdueMs(name) / 1_000);
      }
    },
  });
}
