import { randomUUID } from 'node:crypto';
import {
  type DeliveryRef,
  DUE_AT_HEADER,
  encodeRetryDue,
} from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { newDeliveries, type Owner } from './failed-deliveries.ts';

export interface Tier {
  topic: string;
  delayMs: number;
  /** Of the attempt that follows this delay. */
  attemptNumber: number;
}

const BATCH = 5_000;
const BATCHES_AT_ONCE = 2;

/** Puts records on a delay topic as the retry service does when an attempt has just failed. */
export async function parkRetries(
  log: Pick<RecordLog, 'publish'>,
  tier: Tier,
  { owner, count, signal }: { owner: Owner; count: number; signal: AbortSignal },
): Promise<void> {
  let rest = count;
  const worker = async (): Promise<void> => {
    while (rest > 0 && !signal.aborted) {
      const size = Math.min(BATCH, rest);
      rest -= size;
      const dueAtMs = Date.now() + tier.delayMs;
      await log.publish(newDeliveries(owner, size).map((ref) => parked(tier, ref, dueAtMs)));
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, worker));
}

function parked({ topic, attemptNumber }: Tier, ref: DeliveryRef, dueAtMs: number): OutgoingRecord {
  return {
    topic,
    key: ref.webhookId,
    value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs }),
    headers: { requestId: randomUUID(), [DUE_AT_HEADER]: String(dueAtMs) },
  };
}
