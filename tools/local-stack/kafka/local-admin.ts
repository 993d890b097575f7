import { patchRequestQueue } from '@posthorn/platform/kafka/kafkajs/patch-request-queue.ts';
import { Kafka, logLevel, type Admin } from 'kafkajs';

/** Returns an admin client that does not retry and does not log. The caller connects and disconnects it. */
export function createLocalAdmin(brokers: string): Admin {
  patchRequestQueue();
  return new Kafka({
    clientId: 'posthorn-local-stack',
    brokers: brokers.split(',').map((broker) => broker.trim()),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 3_000,
    retry: { retries: 0 },
  }).admin();
}
