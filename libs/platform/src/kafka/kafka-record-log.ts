import { MAX_SEND_BYTES } from '@posthorn/domain/records/topics.ts';
import { withTimeout } from '../async/pause.ts';
import { consume } from './consumer/consume.ts';
import type { ConsumeDeps } from './consumer/consume-deps.ts';
import type { OpenGroupClient } from './consumer/group-client.ts';
import { createProcessShare } from './consumer/process-share.ts';
import { openKafkajsGroupClient } from './kafkajs/group-client.ts';
import { connectProducer } from './kafkajs/producer.ts';
import type { OutgoingRecord, RecordLog } from './record-log.ts';

interface RecordLogDeps extends Omit<ConsumeDeps, 'openGroupClient' | 'share'> {
  /** Names this process; the members of a group are ordered by it. */
  instanceId: string;
  /** Opens members of groups on kafkajs unless given. */
  openGroupClient?: OpenGroupClient;
}

/** The producer ends a send before this: four requests of ten seconds and the waits between them. */
const SEND_TIMEOUT_MS = 60_000;
/** Everything was sent and acknowledged, or will be published again by another process. */
const CLOSE_TIMEOUT_MS = 5_000;

/** The record log on Kafka: acknowledged by all in-sync replicas, partitioned by key (murmur2). */
export async function createKafkaRecordLog({
  instanceId,
  openGroupClient = (...given) => openKafkajsGroupClient(deps.kafka, ...given),
  ...deps
}: RecordLogDeps): Promise<RecordLog> {
  const share = createProcessShare(instanceId);
  const producer = await connectProducer(deps.kafka);
  const { operations } = deps.metrics;
  let isConnected = true;
  return {
    async publish(records) {
      for (const part of cutToSends(records)) {
        const startedMs = performance.now();
        await withTimeout(producer.send(part), SEND_TIMEOUT_MS).catch((error: unknown) => {
          isConnected = false;
          operations.failed('produce', performance.now() - startedMs);
          throw error;
        });
        operations.succeeded('produce', performance.now() - startedMs);
        isConnected = true;
        for (const { topic } of part) deps.metrics.produced.inc({ topic });
      }
    },
    consume: (options) => consume({ ...deps, openGroupClient, share }, options),
    async close() {
      isConnected = false;
      await withTimeout(producer.close(), CLOSE_TIMEOUT_MS);
    },
    isConnected: () => isConnected,
  };
}

/** Room for what surrounds a record: lengths, timestamps, headers. */
const OVERHEAD_BYTES = 512;

/**
 * Splits records into requests that a broker accepts, in order: the producer sends one batch for each partition in a
 * request, and topics allow batches of twice MAX_SEND_BYTES. A record is never split.
 */
function cutToSends(records: readonly OutgoingRecord[]): OutgoingRecord[][] {
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
