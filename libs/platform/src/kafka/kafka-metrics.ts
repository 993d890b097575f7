import { Counter, Gauge, type Registry } from 'prom-client';

export interface KafkaMetrics {
  produced: Counter<'topic'>;
  consumed: Counter<'topic'>;
  rebalances: Counter;
  commitFailures: Counter;
  restarts: Counter;
  setLag: (topic: string, partition: number, records: number) => void;
  /** Drops the lag of partitions of these topics that went to another member. */
  keepLagOf: (topics: readonly string[], assignment: Readonly<Record<string, number[]>>) => void;
  /** When the partition of the topic that has waited longest last moved, by the wall clock. */
  setProgress: (topic: string, atMs: number) => void;
}

/** Metrics of the producer and the consumers. The only label is the topic. */
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
  return {
    produced: byTopic('posthorn_kafka_produced_records_total', 'Records acknowledged by Kafka.'),
    consumed: byTopic('posthorn_kafka_consumed_records_total', 'Records read from Kafka.'),
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
    help: 'Records not yet committed in the partitions of the topic that this process owns.',
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
