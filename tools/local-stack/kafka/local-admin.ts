import { mendRequestQueue } from '@posthorn/platform/kafka/kafkajs/request-queue.ts';
import { Kafka, logLevel, type Admin } from 'kafkajs';

/** An admin client that asks once and logs nothing. Connects nowhere; the caller connects and disconnects. */
export function createLocalAdmin(brokers: string): Admin {
  mendRequestQueue();
  return new Kafka({
    clientId: 'posthorn-local-stack',
    brokers: brokers.split(',').map((broker) => broker.trim()),
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 3_000,
    retry: { retries: 0 },
  }).admin();
}
