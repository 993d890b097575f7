import { nextAttemptAfter, type NextAttempt } from '@posthorn/domain/schedule/after-failure.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import {
  decodeDeliveryFailed,
  DUE_AT_HEADER,
  encodeRetryDue,
  readRecord,
  refOf,
  UnreadableRecordError,
  type DeliveryFailed,
} from '@posthorn/domain/records/records.ts';
import { formatDelay, type RetrySchedule } from '@posthorn/domain/schedule/retry-schedule.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { RetryMetrics } from './retry-metrics.ts';

export interface ParkDeps {
  schedule: RetrySchedule;
  parkedByDelayMs: ReadonlyMap<number, string>;
  log: RecordLog;
  deliveries: Pick<DeliveryStore, 'exhaust' | 'statesOf'>;
  deadLetters: DeadLetters;
  metrics: RetryMetrics;
  logger: Logger;
  nowMs: () => number;
}

const BATCH = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };

/**
 * Step 4, park: a failed attempt goes to the delay topic of its step, or ends the schedule.
 * Resolves when Kafka has the parked record, or when the end is stored and the dead letter written.
 */
export function createParkFailure(deps: ParkDeps): (record: LogRecord) => Promise<void> {
  const publish = createBatcher<OutgoingRecord, undefined>({
    ...BATCH,
    run: async (records) => {
      await keepTrying(() => deps.log.publish(records));
      return records.map(() => undefined);
    },
  });
  return async (record) => {
    const failed = readRecord(() => decodeDeliveryFailed(record.value));
    if (failed instanceof UnreadableRecordError) {
      await keepTrying(() => deps.deadLetters.put(record, 'unreadable_record', failed.message));
      return;
    }
    const next = nextAttemptAfter(failed, deps.schedule);
    if (next) await publish.add(parkedRecord(deps, record, failed, next));
    else await exhaust(deps, record, failed);
  };
}

function parkedRecord(
  { parkedByDelayMs, metrics }: ParkDeps,
  { headers, key }: LogRecord,
  failed: DeliveryFailed,
  { attemptNumber, delayMs, dueAtMs }: NextAttempt,
): OutgoingRecord {
  metrics.parked.inc({ delay: formatDelay(delayMs) });
  return {
    // The map holds every delay of the schedule that the delay was just taken from.
    topic: parkedByDelayMs.get(delayMs) ?? '',
    key,
    value: encodeRetryDue({ ...refOf(failed), attemptNumber, dueAtMs }),
    headers: { ...headers, [DUE_AT_HEADER]: String(dueAtMs) },
  };
}

async function exhaust(deps: ParkDeps, record: LogRecord, failed: DeliveryFailed): Promise<void> {
  const { messageId, webhookId, attemptNumber, outcome, statusCode } = failed;
  const deliveryId = deliveryIdOf(messageId, webhookId);
  const isNew = await keepTrying(() =>
    deps.deliveries.exhaust(deliveryId, attemptNumber, deps.nowMs()),
  );
  if (!isNew && !(await isExhausted(deps, deliveryId))) return;
  const detail = `attempt ${attemptNumber} ended ${outcome} with status ${statusCode ?? 'none'}`;
  await keepTrying(() => deps.deadLetters.put(record, 'schedule_exhausted', detail));
  if (isNew) deps.metrics.finished.inc({ result: 'exhausted' });
  deps.logger.info(
    { messageId, deliveryId, attempts: attemptNumber, outcome },
    'delivery exhausted',
  );
}

/** Ended before, but perhaps without its dead letter: a crash may lie in between. */
async function isExhausted({ deliveries }: ParkDeps, deliveryId: string): Promise<boolean> {
  const states = await keepTrying(() => deliveries.statesOf([deliveryId]));
  return states.get(deliveryId)?.status === 'exhausted';
}
