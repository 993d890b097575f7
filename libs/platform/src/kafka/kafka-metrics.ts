import { Counter, Gauge, type Registry } from 'prom-client';
import { systemClockMs } from '../service/clock-and-ids.ts';
import { startAtZero } from '../service/metrics.ts';
import { createStoreMetrics, type StoreMetrics } from '../service/store-metrics.ts';
import type { ReadyRecords } from './record-log.ts';

export interface KafkaMetrics extends BacklogMetrics {
  operations: StoreMetrics<'kafka'>;
  produced: Counter<'topic'>;
  consumed: Counter<'topic'>;
  rebalances: Counter;
  commitFailures: Counter;
  restarts: Counter;
  setLag: (topic: string, partition: number, records: number) => void;
  /** Drops the lag of partitions of these topics that went to another member. */
  keepLagOf: (topics: readonly string[], assignment: Readonly<Record<string, number[]>>) => void;
  /** Creates the counts of these topics at 0. */
  startAtZero: (metric: 'produced' | 'consumed', topics: Iterable<string>) => void;
  /** When the partition of the topic that has waited longest last moved, by the wall clock. */
  setProgress: (topic: string, atMs: number) => void;
}

/** Metrics of the producer and the consumers. The only labels are topic and group. */
export function createKafkaMetrics(registry: Registry): KafkaMetrics {
  const registers = [registry];
  const lagOf = openLagGauge(registry);
  const progress = new Gauge({
    name: 'posthorn_kafka_consumer_last_progress_timestamp_seconds',
    help: 'Time of the last progress of the partition that has waited longest; the current time if none waits.',
    labelNames: ['topic'],
    registers,
  });
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });
  const byTopic = (name: string, help: string): Counter<'topic'> =>
    new Counter({ name, help, labelNames: ['topic'], registers });
  const produced = byTopic(
    'posthorn_kafka_produced_records_total',
    'Records acknowledged by Kafka.',
  );
  const consumed = byTopic('posthorn_kafka_consumed_records_total', 'Records read from Kafka.');
  return {
    ...createBacklogMetrics(registry, systemClockMs),
    operations: createStoreMetrics(registry, 'kafka'),
    produced,
    consumed,
    startAtZero(metric, topics) {
      startAtZero(metric === 'produced' ? produced : consumed, 'topic', topics);
    },
    rebalances: counter('posthorn_kafka_rebalances_total', 'Times a consumer joined its group.'),
    commitFailures: counter('posthorn_kafka_commit_failures_total', 'Offset commits that failed.'),
    restarts: counter(
      'posthorn_kafka_consumer_restarts_total',
      'Consumers that fell out of their group or were replaced.',
    ),
    setLag(topic, partition, records) {
      const ofTopic = lagOf.get(topic) ?? new Map<number, number>();
      lagOf.set(topic, ofTopic.set(partition, Math.max(0, records)));
    },
    keepLagOf(topics, assignment) {
      for (const topic of topics) {
        const ofTopic = lagOf.get(topic);
        for (const partition of ofTopic?.keys() ?? []) {
          if (!assignment[topic]?.includes(partition)) ofTopic?.delete(partition);
        }
      }
    },
    setProgress: (topic, atMs) => {
      progress.set({ topic }, atMs / 1_000);
    },
  };
}

/** topic → partition → records. */
type Lags = Map<string, Map<number, number>>;

function openLagGauge(registry: Registry): Lags {
  const lagOf: Lags = new Map();
  new Gauge({
    name: 'posthorn_kafka_consumer_lag_records',
    help: 'Records not yet committed in the partitions of the topic that this process owns. Never alert or scale on it: one record that hangs blocks the commit of everything behind it, and parked records count too. See posthorn_ready_records.',
    labelNames: ['topic'],
    registers: [registry],
    collect() {
      for (const [topic, partitions] of lagOf) {
        this.set(
          { topic },
          [...partitions.values()].reduce((a, b) => a + b, 0),
        );
      }
    },
  });
  return lagOf;
}

/** Counted with a plain number: a counter of prom-client with labels takes 0.3 µs for each record. */
export interface FinishedRecords {
  records: number;
}

interface BacklogMetrics {
  /** Returns the count of a topic that a group reads, the same one each time. */
  finishedOf: (groupId: string, topic: string) => FinishedRecords;
  /** Reads the member of a group at each scrape. */
  show: (groupId: string, member: ShownMember) => void;
}

interface ShownMember {
  /** False while the process is no member of the group. */
  isRunning: () => boolean;
  /** `nowMs`: milliseconds since 1970. */
  ready: (nowMs: number) => ReadonlyMap<string, ReadyRecords>;
}

interface Shown extends ShownMember {
  groupId: string;
}

const LABELS = ['group', 'topic'] as const;

/** What is ready and not finished, and how much is finished (docs/decisions/0034-time-based-backlog.md). */
function createBacklogMetrics(registry: Registry, nowMs: () => number): BacklogMetrics {
  const finished = new Map<string, { group: string; topic: string; count: FinishedRecords }>();
  const shown: Shown[] = [];
  countFinished(registry, finished.values.bind(finished));
  showReady(registry, shown, nowMs);
  showMembers(registry, shown);
  return {
    finishedOf(group, topic) {
      const key = `${group} ${topic}`;
      const entry = finished.get(key) ?? { group, topic, count: { records: 0 } };
      finished.set(key, entry);
      return entry.count;
    },
    show(groupId, { isRunning, ready }) {
      shown.push({ groupId, isRunning, ready });
    },
  };
}

function countFinished(
  registry: Registry,
  entries: () => Iterable<{ group: string; topic: string; count: FinishedRecords }>,
): void {
  new Counter({
    name: 'posthorn_finished_records_total',
    help: 'Records that need no further work of this group: handled, deferred, moved to another topic or dead.',
    labelNames: LABELS,
    registers: [registry],
    collect() {
      this.reset();
      for (const { group, topic, count } of entries()) this.inc({ group, topic }, count.records);
    },
  });
}

function showReady(registry: Registry, shown: readonly Shown[], nowMs: () => number): void {
  const gauge = (name: string, help: string, valueOf: (ready: ReadyRecords) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: LABELS,
      registers: [registry],
      collect() {
        for (const { groupId: group, ready: readyAt } of shown) {
          for (const [topic, ready] of readyAt(nowMs())) this.set({ group, topic }, valueOf(ready));
        }
      },
    });
  };
  gauge(
    'posthorn_ready_records',
    'Records in the partitions of this process whose time has come and that are not finished, read or not. What is parked or deferred counts once it is due.',
    ({ records }) => records,
  );
  gauge(
    'posthorn_oldest_ready_age_seconds',
    'Time since the oldest record of posthorn_ready_records became ready; 0 when there is none.',
    ({ oldestMs }) => (oldestMs === Infinity ? 0 : Math.max(0, nowMs() - oldestMs) / 1_000),
  );
}

function showMembers(registry: Registry, shown: readonly Shown[]): void {
  new Gauge({
    name: 'posthorn_kafka_group_members',
    help: 'Members of the consumer group in this process: 1, or 0 while it cannot join. A group whose sum is 0 is read by nobody.',
    labelNames: ['group'],
    registers: [registry],
    collect() {
      for (const { groupId: group, isRunning } of shown) this.set({ group }, isRunning() ? 1 : 0);
    },
  });
}
