import { randomUUID } from 'node:crypto';
import type { Namespace } from '../process/namespace.ts';
import { openKafka } from './open-kafka.ts';

export interface ReadRecord {
  value: string;
  headers: Record<string, string>;
}

const TIMEOUT_MS = 60_000;

/** Reads a topic of the namespace from its beginning until a record matches; returns that record. */
export async function readTopic(
  env: Namespace,
  topic: string,
  matches: (record: ReadRecord) => boolean,
): Promise<ReadRecord[]> {
  const kafka = openKafka(env);
  const consumer = kafka.consumer({ groupId: `${env.TOPIC_PREFIX}reader-${randomUUID()}` });
  await consumer.connect();
  await consumer.subscribe({ topic: env.TOPIC_PREFIX + topic, fromBeginning: true });
  try {
    return await new Promise<ReadRecord[]>((resolve, reject) => {
      setTimeout(() => {
        reject(new Error(`no such record in ${topic} within ${TIMEOUT_MS} ms`));
      }, TIMEOUT_MS).unref();
      void consumer.run({
        eachMessage: ({ message }) => {
          const headers = Object.entries(message.headers ?? {});
          const record = {
            value: message.value?.toString() ?? '',
            headers: Object.fromEntries(headers.map(([name, value]) => [name, String(value)])),
          };
          if (matches(record)) resolve([record]);
          return Promise.resolve();
        },
      });
    });
  } finally {
    await consumer.disconnect();
  }
}
