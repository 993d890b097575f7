import { encodeDeliveryFailed } from '@posthorn/domain/records/records.ts';
import { toDeadLetter, type DeadLetterReason } from '@posthorn/platform/records/dead-letters.ts';
import type { StoredRecord } from '@posthorn/platform/kafka/read-topic.ts';
import { sampleRecord } from './sample-record.ts';

export const FAILED = {
  messageId: `msg_${'1'.repeat(26)}`,
  webhookId: `wh_${'2'.repeat(26)}`,
  companyId: 'comp_a',
  appId: null,
  createdAtMs: 1_000,
  attemptNumber: 7,
  endedAtMs: 2_000,
  outcome: 'http_5xx',
  statusCode: 503,
};

export interface SampleLetter {
  reason?: DeadLetterReason;
  /** Without its prefix, which is `p.`. */
  topic?: string;
  value?: Buffer;
  key?: string;
  offset?: number;
  atMs?: number;
}

/** Returns a dead letter as it is stored in its topic; by default of an exhausted delivery. */
export function sampleLetter({
  reason = 'schedule_exhausted',
  topic = 'delivery-failed',
  value = encodeDeliveryFailed(FAILED),
  key = FAILED.webhookId,
  offset = 7,
  atMs = 5_000,
}: SampleLetter = {}): Omit<StoredRecord, 'stored'> {
  const source = sampleRecord({}, { topic: `p.${topic}`, partition: 3, offset: 42, key, value });
  const { headers = {}, ...letter } = toDeadLetter('p.dead-letters', source, reason, 'why');
  return { ...letter, headers, partition: 1, offset, atMs };
}
