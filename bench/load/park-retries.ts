import { randomUUID } from 'node:crypto';
import { encodeRetryDue } from '@posthorn/domain/records/records.ts';
import { DUE_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import type { DeliveryRef } from '@posthorn/domain/message/delivery.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { newDeliveries, type Owner } from './failed-deliveries.ts';

export interface DelayTopic {
  topic: string;
  delayMs: number;
  /** The number of the attempt that follows this delay. */
  attemptNumber: number;
}

const BATCH = 5_000;
const BATCHES_AT_ONCE = 2;

/** Publishes records to a delay topic, as the retry service does when an attempt has just failed. */
export async function parkRetries(
  records: Pick<RecordLog, 'publish'>,
  delayTopic: DelayTopic,
  { owner, count, signal }: { owner: Owner; count: number; signal: AbortSignal },
): Promise<void> {
  let rest = count;
  const worker = async (): Promise<void> => {
    while (rest > 0 && !signal.aborted) {
      const size = Math.min(BATCH, rest);
      rest -= size;
      const dueAtMs = Date.now() + delayTopic.delayMs;
      await records.publish(
        newDeliveries(owner, size).map((ref) => parked(delayTopic, ref, dueAtMs)),
      );
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, worker));
}

function parked(
  { topic, attemptNumber }: DelayTopic,
  ref: DeliveryRef,
  dueAtMs: number,
): OutgoingRecord {
  return {
    topic,
    key: ref.webhookId,
    value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs }),
    headers: { requestId: randomUUID(), [DUE_AT_HEADER]: String(dueAtMs) },
  };
}
