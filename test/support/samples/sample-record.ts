import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';

/** Returns a due first attempt to wh_1. */
export function sampleDue(changed: Partial<DueAttempt> = {}): DueAttempt {
  const due = {
    messageId: 'msg_01m7y9sd1vcyc08g7bpf97f5mm',
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: 'app_1',
    createdAtMs: 1_000,
    dueAtMs: 1_000,
    attemptNumber: 1,
    trigger: 'first',
    isCancelled: false,
    payload: null,
    ...changed,
  } satisfies Partial<DueAttempt>;
  const deliveryId = deliveryIdOf(due.messageId, due.webhookId);
  return { ...due, deliveryId, attemptId: attemptIdOf(deliveryId, due.attemptNumber) };
}

/** Returns a record of a topic with due attempts. */
export function sampleRecord(
  headers: Record<string, string> = {},
  changed: Partial<LogRecord> = {},
): LogRecord {
  return {
    topic: 'created',
    partition: 0,
    offset: 0,
    key: 'wh_1',
    value: Buffer.alloc(0),
    isInherited: false,
    stored: { key: null, value: null, headers: {} },
    ownedSinceMs: 0,
    timestampMs: 1_000,
    headers: { requestId: 'req_1', ...headers },
    ...changed,
  };
}
