import { Counter, Gauge, type Registry } from 'prom-client';

export interface KafkaMetrics {
  produced: Counter<'topic'>;
  consumed: Counter<'topic'>;
  rebalances: Counter;
  commitFailures: Counter;
  restarts: Counter;
  setLag: (topic: string, partition: number, records: number) => void;
}

/** Metrics of everything that produces or consumes; label values are topic names only. */
export function createKafkaMetrics(registry: Registry): KafkaMetrics {
  const registers = [registry];
  const lagOf = new Map<string, Map<number, number>>();
  new Gauge({
    name: 'posthorn_kafka_consumer_lag_records',
    help: 'Records of the topic that this process has read of and not committed, over its partitions.',
    labelNames: ['topic'],
    registers,
    collect() {
      for (const [topic, partitions] of lagOf) {
        this.set(
          { topic },
          [...partitions.values()].reduce((a, b) => a + b, 0),
        );
      }
    },
  });
  const counter = (name: string, help: string): Counter => new Counter({ name, help, registers });
  const byTopic = (name: string, help: string): Counter<'topic'> =>
    new Counter({ name, help, labelNames: ['topic'], registers });
  return {
    produced: byTopic('posthorn_kafka_produced_records_total', 'Records acknowledged by Kafka.'),
    consumed: byTopic('posthorn_kafka_consumed_records_total', 'Records handed over by Kafka.'),
    rebalances: counter('posthorn_kafka_rebalances_total', 'Times a consumer joined its group.'),
    commitFailures: counter('posthorn_kafka_commit_failures_total', 'Offset commits that failed.'),
    restarts: counter('posthorn_kafka_consumer_restarts_total', 'Consumers that began anew.'),
    setLag(topic, partition, records) {
      const ofTopic = lagOf.get(topic) ?? new Map<number, number>();
      lagOf.set(topic, ofTopic.set(partition, Math.max(0, records)));
    },
  };
}
