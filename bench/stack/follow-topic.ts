import { randomUUID } from 'node:crypto';
import type { Kafka, KafkaMessage } from 'kafkajs';

export interface Followed {
  message: KafkaMessage;
  /** When its batch was received, in milliseconds since 1970. */
  receivedAtMs: number;
}

export interface Follower {
  close: () => Promise<void>;
}

/**
 * Reads a topic in a consumer group of its own that commits nothing. Resolves when it has its partitions.
 * For a topic that is still empty. A record costs the generator some microseconds: there is no promise for each.
 */
export async function followTopic(
  kafka: Kafka,
  topic: string,
  onRecord: (followed: Followed) => void,
): Promise<Follower> {
  const consumer = kafka.consumer({
    groupId: `bench-${randomUUID()}`,
    minBytes: 1,
    maxWaitTimeInMs: 100,
  });
  const hasJoined = new Promise<void>((resolve) => {
    consumer.on(consumer.events.GROUP_JOIN, () => {
      resolve();
    });
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: ({ batch }) => {
      const receivedAtMs = Date.now();
      for (const message of batch.messages) onRecord({ message, receivedAtMs });
      return Promise.resolve();
    },
  });
  await hasJoined;
  return { close: () => consumer.disconnect() };
}
