import { Counter, Gauge, type Registry } from 'prom-client';
import { startAtZero } from '../service/metrics.ts';
import { createStoreMetrics, type StoreMetrics } from '../service/store-metrics.ts';
import { createIsAssigned, type ReadyRecords } from './record-log.ts';

export interface KafkaMetrics {
  operations: StoreMetrics<'kafka'>;
  produced: Counter<'topic'>;
  consumed: Pick<Counter<'topic'>, 'inc'>;
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
  /** Returns the count of a topic that a group reads, the same one each time. */
  finishedOf: (groupId: string, topic: string) => FinishedRecords;
  /** Reads the member of a group at each scrape. */
  show: (groupId: string, member: MemberMetrics) => void;
}

/** Counted with a plain number: a counter of prom-client with labels takes 0.3 µs for each record. */
export interface FinishedRecords {
  records: number;
}

interface MemberMetrics {
  /** False while the process is no member of the group. */
  isRunning: () => boolean;
  /** `nowMs`: milliseconds since 1970. */
  ready: (nowMs: number) => ReadonlyMap<string, ReadyRecords>;
}

/**
 * Metrics of the producer and the consumers. The only labels are topic and group. `nowMs` is the clock by which records are
 * due, see ConsumerDeps.
 */
export function createKafkaMetrics(registry: Registry, nowMs: () => number): KafkaMetrics {
  const registers = [registry];
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });
  const byTopic = (name: string, help: string): Counter<'topic'> =>
    new Counter({ name, help, labelNames: ['topic'], registers });
  const produced = byTopic(
    'posthorn_kafka_produced_records_total',
    'Records acknowledged by Kafka.',
  );
  const consumed = byTopic('posthorn_kafka_consumed_records_total', 'Records read from Kafka.');
  const progress = new Gauge({
    name: 'posthorn_kafka_consumer_last_progress_timestamp_seconds',
    help: 'Time of the last progress of the partition that has waited longest; the current time if none waits.',
    labelNames: ['topic'],
    registers,
  });
  return {
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
    setProgress: (topic, atMs) => {
      progress.set({ topic }, atMs / 1_000);
    },
    ...createLag(registry),
    finishedOf: createFinished(registry),
    show: createMembers(registry, nowMs),
  };
}

function createLag(registry: Registry): Pick<KafkaMetrics, 'setLag' | 'keepLagOf'> {
  /** Topic → partition → records. */
  const lagOf = new Map<string, Map<number, number>>();
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
  return {
    setLag(topic, partition, records) {
      const ofTopic = lagOf.get(topic) ?? new Map<number, number>();
      lagOf.set(topic, ofTopic.set(partition, Math.max(0, records)));
    },
    keepLagOf(topics, assignment) {
      const isAssigned = createIsAssigned(assignment);
      for (const topic of topics) {
        const ofTopic = lagOf.get(topic);
        for (const partition of ofTopic?.keys() ?? []) {
          if (!isAssigned({ topic, partition })) ofTopic?.delete(partition);
        }
      }
    },
  };
}

const GROUP_AND_TOPIC = ['group', 'topic'] as const;

/** docs/decisions/0034-time-based-backlog.md */
function createFinished(registry: Registry): KafkaMetrics['finishedOf'] {
  const counts = new Map<string, FinishedRecords & { group: string; topic: string }>();
  new Counter({
    name: 'posthorn_finished_records_total',
    help: 'Records that need no further work of this group: handled, deferred, moved to another topic or dead.',
    labelNames: GROUP_AND_TOPIC,
    registers: [registry],
    collect() {
      this.reset();
      for (const { group, topic, records } of counts.values()) this.inc({ group, topic }, records);
    },
  });
  return (group, topic) => {
    const key = `${group} ${topic}`;
    const count = counts.get(key) ?? { group, topic, records: 0 };
    counts.set(key, count);
    return count;
  };
}

function createMembers(registry: Registry, nowMs: () => number): KafkaMetrics['show'] {
  const registers = [registry];
  const members: { group: string; member: MemberMetrics }[] = [];
  new Gauge({
    name: 'posthorn_kafka_group_members',
    help: 'Members of the consumer group in this process: 1, or 0 while it cannot join. A group whose sum is 0 is read by nobody.',
    labelNames: ['group'],
    registers,
    collect() {
      for (const { group, member } of members) this.set({ group }, member.isRunning() ? 1 : 0);
    },
  });
  const gauge = (name: string, help: string, valueOf: (ready: ReadyRecords) => number): void => {
    new Gauge({
      name,
      help,
      labelNames: GROUP_AND_TOPIC,
      registers,
      collect() {
        for (const { group, member } of members) {
          for (const [topic, ready] of member.ready(nowMs())) {
            this.set({ group, topic }, valueOf(ready));
          }
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
    ({ oldestMs }) => Math.max(0, nowMs() - oldestMs) / 1_000,
  );
  return (group, member) => members.push({ group, member });
}
