import { randomUUID } from 'node:crypto';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createTopics } from '@posthorn/platform/kafka/create-topics.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/logger.ts';
import type { Consumer, ConsumerConfig, Kafka } from 'kafkajs';
import { Registry } from 'prom-client';
import { createNamespace } from './namespace.ts';

export interface ScratchLog {
  log: RecordLog;
  /** Opens the log of another process: a client and a name of its own. */
  openAnother: () => Promise<RecordLog>;
  /** Makes a topic with three partitions in a namespace of its own. */
  newTopic: (name: string) => Promise<string>;
  /** The metrics of `log` and of those opened after it. */
  registry: Registry;
}

/** A record log on the real broker; `onConsumer` is given every consumer that it makes. */
export async function openScratchLog(
  onConsumer: (consumer: Consumer) => void = () => undefined,
): Promise<ScratchLog> {
  const env = createNamespace();
  const logger = createLogger('test', 'silent');
  const registry = new Registry();
  const metrics = createKafkaMetrics(registry);
  const kafka = createKafkaClient('posthorn-test', [env.KAFKA_BROKERS], logger);
  const open = (client: Kafka): Promise<RecordLog> =>
    createKafkaRecordLog({
      kafka: showing(client, onConsumer),
      instanceId: randomUUID(),
      ...{ logger, metrics },
      onFatal: (reason) => {
        throw new Error(reason);
      },
    });
  return {
    log: await open(kafka),
    openAnother: () => open(createKafkaClient('posthorn-test', [env.KAFKA_BROKERS], logger)),
    newTopic: async (name) => {
      const topic = env.TOPIC_PREFIX + name;
      const layout = { partitions: 3, replication: 1 };
      await createTopics(kafka, [{ name: topic, retentionMs: 3_600_000 }], layout);
      return topic;
    },
    registry,
  };
}

function showing(kafka: Kafka, onConsumer: (consumer: Consumer) => void): Kafka {
  const consumer = (config: ConsumerConfig): Consumer => {
    const made = kafka.consumer(config);
    onConsumer(made);
    return made;
  };
  return Object.assign(Object.create(kafka) as Kafka, { consumer });
}
