import { consume } from './consumer/consume.ts';
import type { RecordCarrier } from './consumer/group-client.ts';
import type { ConsumeDeps } from './consumer/join-group.ts';
import { createKafkajsCarrier } from './kafkajs/carrier.ts';
import type { OutgoingRecord, RecordLog } from './record-log.ts';

export interface RecordLogDeps extends Omit<ConsumeDeps, 'openGroupClient'> {
  /** Names this process; members of its groups are ordered by it. */
  instanceId: string;
  /** kafkajs unless given. */
  carrier?: RecordCarrier;
}

/** The record log on Kafka: acknowledged by all in-sync replicas, partitioned by key (murmur2). */
export async function createKafkaRecordLog({
  instanceId,
  carrier,
  ...deps
}: RecordLogDeps): Promise<RecordLog> {
  const { connectSender, openGroupClient } =
    carrier ?? createKafkajsCarrier(deps.kafka, instanceId);
  const sender = await connectSender();
  let isConnected = true;
  return {
    async publish(records) {
      for (const part of inSends(records)) {
        await sender.send(part).catch((error: unknown) => {
          isConnected = false;
          throw error;
        });
        isConnected = true;
        for (const { topic } of part) deps.metrics.produced.inc({ topic });
      }
    },
    consume: (options) => consume({ ...deps, openGroupClient }, options),
    async close() {
      isConnected = false;
      await sender.close();
    },
    isConnected: () => isConnected,
  };
}

/** Brokers refuse record batches over 1 MiB, and a client makes one batch per partition and request. */
const MAX_SEND_BYTES = 524_288;
/** Room for what surrounds a record: lengths, timestamps, headers. */
const OVERHEAD_BYTES = 512;

/** Cuts what is to be sent into requests that a broker takes, in order; a record is never cut. */
export function inSends(records: readonly OutgoingRecord[]): OutgoingRecord[][] {
  const sends: OutgoingRecord[][] = [];
  let bytes = Infinity;
  for (const record of records) {
    bytes += record.value.length + record.key.length + OVERHEAD_BYTES;
    if (bytes > MAX_SEND_BYTES) {
      sends.push([]);
      bytes = record.value.length + record.key.length + OVERHEAD_BYTES;
    }
    sends.at(-1)?.push(record);
  }
  return sends;
}
