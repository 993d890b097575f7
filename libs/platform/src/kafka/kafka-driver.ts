import type { OpenGroupClient } from './consumer/group-client.ts';
import type { OutgoingRecord } from './record-log.ts';

/** Sends records of any topics. The caller cuts them to what a broker accepts in one request. */
export interface RecordProducer {
  /** Resolves when every in-sync replica has all of them. After a rejection some may be stored. */
  send: (records: readonly OutgoingRecord[]) => Promise<void>;
  close: () => Promise<void>;
}

/** The client package that sends and reads records. Topics and groups are administrated with kafkajs. */
export interface KafkaDriver {
  /** Rejects when Kafka cannot be reached. */
  connectProducer: () => Promise<RecordProducer>;
  openGroupClient: OpenGroupClient;
}
