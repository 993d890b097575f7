import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { createTopics } from '@posthorn/platform/kafka/create-topics.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createKafkaRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createLogger } from '@posthorn/platform/logger.ts';
import { Registry } from 'prom-client';
import { createNamespace } from './namespace.ts';

export interface ScratchLog {
  log: RecordLog;
  /** Makes a topic with three partitions in a namespace of its own. */
  newTopic: (name: string) => Promise<string>;
}

/** A record log on the real broker. */
export async function openScratchLog(): Promise<ScratchLog> {
  const env = createNamespace();
  const logger = createLogger('test', 'silent');
  const kafka = createKafkaClient('posthorn-test', [env.KAFKA_BROKERS], logger);
  const log = await createKafkaRecordLog({
    kafka,
    logger,
    metrics: createKafkaMetrics(new Registry()),
    onFatal: (reason) => {
      throw new Error(reason);
    },
  });
  return {
    log,
    newTopic: async (name) => {
      const topic = env.TOPIC_PREFIX + name;
      const layout = { partitions: 3, replication: 1 };
      await createTopics(kafka, [{ name: topic, retentionMs: 3_600_000 }], layout);
      return topic;
    },
  };
}
