import { DEFERRED_SINCE_HEADER, readMs } from '@posthorn/domain/records/record-headers.ts';
import { payloadlessValue, type DueAttempt } from '@posthorn/domain/records/records.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { IsOurs, LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Held } from '@posthorn/platform/memory/record-memory.ts';
import { turnAtOf } from './isolation/defer-attempt.ts';
import type { QueueKind } from './isolation/gate/views.ts';
import type { Admission } from './isolation/queues/admission.ts';
import type { Queues } from './isolation/queues/queues.ts';

/** A record, what it says, the memory that it takes, and whether its partition is still read here. */
export interface AttemptUnderWay {
  record: LogRecord;
  due: DueAttempt;
  held: Held;
  isOurs: IsOurs;
}

export interface EnterQueueDeps {
  queues: Pick<Queues, 'enter'>;
  slowLaneTopic: string;
  nowMs: () => number;
}

/** Resolves when the attempt has a place at its endpoint, or must leave. */
export function enterQueue(
  { queues, slowLaneTopic, nowMs }: EnterQueueDeps,
  underWay: AttemptUnderWay,
  { id, url, rateLimitPerSecond }: Webhook,
): Promise<Admission> {
  const { record, due } = underWay;
  return queues.enter({
    webhookId: id,
    companyId: due.companyId,
    url,
    queue: record.topic === slowLaneTopic ? 'slow' : queueOf(due),
    trigger: due.trigger,
    rateLimitPerSecond,
    turnAtMs: turnAtOf(record, nowMs()),
    deferredSinceMs: readMs(record.headers, DEFERRED_SINCE_HEADER),
    hasPayload: () => due.payload !== null,
    dropPayload: () => {
      dropPayload(underWay);
    },
  });
}

function queueOf({ trigger }: DueAttempt): QueueKind {
  return trigger === 'first' || trigger === 'test' ? 'first' : 'retry';
}

/** Value and payload are slices of one fetch. Either of them would keep all of it in memory. */
function dropPayload({ record, due, held }: AttemptUnderWay): void {
  if (!due.payload) return;
  record.value = payloadlessValue(record.value);
  due.payload = null;
  held.setTo(record.value.length);
}
