import { formatDelay } from '@posthorn/domain/delivery/schedule.ts';
import { STUCK_CAUSES } from '@posthorn/domain/delivery/stuck-delivery.ts';
import type { DelayKind, DelayTopic } from '@posthorn/domain/records/topics.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export interface RetryMetrics {
  parked: Counter<'delay'>;
  finished: Counter<'result'>;
  observeLateness: (topic: DelayTopic, lateMs: number) => void;
  swept: Counter;
  stuck: StuckMetrics;
  operatorEvents: Counter<'result'>;
}

export interface StuckMetrics {
  moved: Counter<'found'>;
  /** The sweep has checked every message that was old enough. */
  onCompleted: () => void;
  /** The messages made before `atMs` (milliseconds since 1970) are checked; null when none is. */
  onChecked: (atMs: number | null) => void;
}

/** Two topics, one of each kind, may have the same delay. */
const DELAY_LABELS = ['delay', 'kind'] as const;

function labelsOf({ delayMs, kind }: DelayTopic): { delay: string; kind: DelayKind } {
  return { delay: formatDelay(delayMs), kind };
}

function counterOf<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  label: Label,
  values: Iterable<string>,
): Counter<Label> {
  const counter = new Counter({ name, help, labelNames: [label], registers: [registry] });
  startAtZero(counter, label, values);
  return counter;
}

/** `schedule` has the delays of retries in milliseconds. */
export function createRetryMetrics(
  registry: Registry,
  schedule: readonly number[],
  nowMs: () => number,
): RetryMetrics {
  const lateness = createLateness(registry);
  return {
    parked: counterOf(
      registry,
      'posthorn_retries_parked_total',
      'Failed attempts whose next attempt was written to a delay topic.',
      'delay',
      schedule.map(formatDelay),
    ),
    finished: counterOf(
      registry,
      'posthorn_deliveries_finished_total',
      'Deliveries that this process brought to a final state.',
      'result',
      ['exhausted', 'cancelled'],
    ),
    observeLateness(topic, lateMs) {
      lateness.observe(labelsOf(topic), Math.max(0, lateMs) / 1_000);
    },
    swept: new Counter({
      name: 'posthorn_swept_records_total',
      help: 'Records published for a gateway that crashed or fell behind.',
      registers: [registry],
    }),
    stuck: {
      moved: counterOf(
        registry,
        'posthorn_reconciled_deliveries_total',
        'Stuck deliveries that the sweep published again or recorded as cancelled.',
        'found',
        STUCK_CAUSES,
      ),
      ...watchStuckSweep(registry, nowMs),
    },
    operatorEvents: counterOf(
      registry,
      'posthorn_operator_events_total',
      'Operator events that were sent to OPERATOR_WEBHOOK_URL, or given up.',
      'result',
      ['delivered', 'failed'],
    ),
  };
}

function createLateness(registry: Registry): Histogram<(typeof DELAY_LABELS)[number]> {
  return new Histogram({
    name: 'posthorn_retry_lateness_seconds',
    help: 'Time between when a retry or a deferred attempt was due and when it was published.',
    labelNames: DELAY_LABELS,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 3_600],
    registers: [registry],
  });
}

function watchStuckSweep(registry: Registry, nowMs: () => number): Omit<StuckMetrics, 'moved'> {
  const lastCompleted = new Gauge({
    name: 'posthorn_reconcile_last_pass_timestamp_seconds',
    help: 'Time of the last completed sweep of stuck deliveries in this process; 0 when there was none.',
    registers: [registry],
  });
  let checkedToMs: number | null = null;
  new Gauge({
    name: 'posthorn_reconcile_position_age_seconds',
    help: 'Age of the newest message checked by the sweep of stuck deliveries in its oldest share, as last seen here; RECONCILE_AFTER and a few minutes when it keeps up, 0 when unknown. Take the lowest of all processes.',
    registers: [registry],
    collect() {
      const now = nowMs();
      this.set((now - (checkedToMs ?? now)) / 1_000);
    },
  });
  return {
    onChecked(atMs) {
      checkedToMs = atMs;
    },
    onCompleted() {
      lastCompleted.setToCurrentTime();
    },
  };
}

const LAG = 'posthorn_kafka_consumer_lag_records';

/** Shows what waits on each delay topic, computed at each scrape. */
export function showParked(
  registry: Registry,
  delayTopics: ReadonlyMap<string, DelayTopic>,
  overdueMs: (topic: string) => number,
): void {
  new Gauge({
    name: 'posthorn_retry_pending',
    help: 'Records that are not released yet, on the partitions of the delay topic that this process reads.',
    labelNames: DELAY_LABELS,
    registers: [registry],
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
    registers: [registry],
    collect() {
      for (const [name, topic] of delayTopics) this.set(labelsOf(topic), overdueMs(name) / 1_000);
    },
  });
}

/**
 * `oldestAtMs` returns when the oldest message that the sweep knows to be unpublished was accepted, in milliseconds since
 * 1970; null when there is none.
 */
export function showUnpublished(
  registry: Registry,
  oldestAtMs: () => number | null,
  nowMs: () => number,
): void {
  new Gauge({
    name: 'posthorn_unpublished_oldest_seconds',
    help: 'Age of the oldest message that its gateway did not publish; 0 when there is none.',
    registers: [registry],
    collect() {
      const now = nowMs();
      this.set(Math.max(0, now - (oldestAtMs() ?? now)) / 1_000);
    },
  });
}
