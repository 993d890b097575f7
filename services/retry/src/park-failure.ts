import { exhaustReasonOf } from '@posthorn/domain/delivery/ending.ts';
import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { readRecord, UnreadableRecordError } from '@posthorn/domain/records/record-value.ts';
import {
  decodeEndedAttempt,
  type DeliveryFailed,
  logFieldsOf,
  type WebhookDisabling,
} from '@posthorn/domain/records/records.ts';
import { parkedRecord } from '@posthorn/domain/records/retry-due.ts';
import { required } from '@posthorn/domain/required.ts';
import {
  formatDelay,
  nextAttemptAfter,
  type RetrySchedule,
} from '@posthorn/domain/delivery/schedule.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import { createBatchedPublisher } from '@posthorn/platform/kafka/batched-publisher.ts';
import type { LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { DisableWebhook } from './disable-webhook.ts';
import type { ReportIncident } from '@posthorn/platform/records/operator-incidents.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { SequenceStore } from '@posthorn/platform/mongo/messages/sequences.ts';
import type { RetryMetrics } from './metrics.ts';

interface ParkDeps {
  schedule: RetrySchedule;
  /** The delay topics of the schedule, by delay in milliseconds. */
  parkedByDelayMs: ReadonlyMap<number, string>;
  records: RecordLog;
  deliveries: Pick<DeliveryStore, 'exhaust' | 'statesOf'>;
  sequences: Pick<SequenceStore, 'makeDue'>;
  deadLetters: DeadLetters;
  disableWebhook: DisableWebhook;
  /** Reports disabled webhooks to the operator. */
  report: ReportIncident;
  keepTrying: KeepTrying;
  metrics: RetryMetrics;
  logger: Logger;
  nowMs: () => number;
}

/**
 * Park: writes the next attempt to the delay topic of its delay, or ends the schedule when the failed attempt was the last,
 * by the schedule or by its webhook. Resolves when Kafka has the parked record, or when the delivery is exhausted and its
 * dead letter is written. For an attempt whose response disables its webhook: when the webhook is disabled.
 */
export function createParkFailure(deps: ParkDeps): (record: LogRecord) => Promise<void> {
  const publish = createBatchedPublisher({
    records: deps.records,
    keepTrying: deps.keepTrying,
    purpose: 'publish parked records',
  });
  async function parkNext(record: LogRecord, failed: DeliveryFailed): Promise<void> {
    const next = nextAttemptAfter(failed, deps.schedule);
    if (!next) {
      await exhaust(deps, record, failed);
      await goOnBehind(deps, failed);
      return;
    }
    const topic = required(deps.parkedByDelayMs, next.delayMs, 'delay topic of the schedule');
    await publish({ topic, ...parkedRecord(failed, next, record.headers) });
    deps.metrics.parked.inc({ delay: formatDelay(next.delayMs) });
  }

  return async (record) => {
    const ended = readRecord(() => decodeEndedAttempt(record.value));
    if (ended instanceof UnreadableRecordError) {
      await deps.keepTrying('publish a dead letter', () =>
        deps.deadLetters.put(record, 'unreadable_record', ended.message),
      );
      return;
    }
    switch (ended.kind) {
      case 'failed':
        await parkNext(record, ended);
        break;
      case 'disables':
        await disableByEndpoint(deps, ended);
    }
  };
}

/** Dispatchers have no right to change webhooks. */
async function disableByEndpoint(
  { disableWebhook, report, keepTrying, logger }: ParkDeps,
  { companyId, webhookId, reason, changedAtMs }: WebhookDisabling,
): Promise<void> {
  const seen = { id: webhookId, companyId, changedAtMs };
  const isDisabled = await keepTrying('disable a webhook', () => disableWebhook(seen, reason));
  // A client has changed or deleted it meanwhile, or the record was read twice.
  if (!isDisabled) return;
  logger.warn({ companyId, webhookId, reason }, 'webhook disabled by its endpoint');
  report({ type: 'endpoint.disabled', companyId, webhookId, detail: TOLD_BY[reason] });
}

const TOLD_BY = {
  gone: 'its endpoint answered 410',
  control_header: 'its endpoint answered with the header webhook-delivery: disable',
};

async function exhaust(deps: ParkDeps, record: LogRecord, failed: DeliveryFailed): Promise<void> {
  const { messageId, webhookId, attemptNumber, outcome, statusCode, ending = null } = failed;
  const deliveryId = deliveryIdOf(messageId, webhookId);
  const reason = exhaustReasonOf(ending);
  const end = { id: deliveryId, attemptCount: attemptNumber, reason, atMs: deps.nowMs() };
  const isNew = await deps.keepTrying('record exhausted deliveries', () =>
    deps.deliveries.exhaust(end),
  );
  if (!isNew && !(await isExhausted(deps, deliveryId))) return;
  const detail = `attempt ${attemptNumber} ended ${outcome} with status ${statusCode ?? 'none'}`;
  await deps.keepTrying('publish a dead letter', () =>
    deps.deadLetters.put(record, reason ?? 'schedule_exhausted', detail),
  );
  if (isNew) deps.metrics.finished.inc({ result: 'exhausted' });
  deps.logger.info(
    {
      ...logFieldsOf({ ...failed, deliveryId }),
      attempts: attemptNumber,
      outcome,
      statusCode,
      ending,
    },
    'delivery exhausted',
  );
}

/** A delivery with an ordering key has ended here, or has been delivered by another attempt meanwhile. */
async function goOnBehind(
  { sequences, keepTrying, nowMs }: ParkDeps,
  { webhookId, orderingKey }: DeliveryFailed,
): Promise<void> {
  if (orderingKey === undefined) return;
  const id = sequenceIdOf(webhookId, orderingKey);
  await keepTrying('make a sequence due', () => sequences.makeDue([id], nowMs()));
}

/** The delivery may have been exhausted before, by a process that crashed before it wrote the dead letter. */
async function isExhausted(
  { deliveries, keepTrying }: ParkDeps,
  deliveryId: string,
): Promise<boolean> {
  const states = await keepTrying('look up deliveries', () => deliveries.statesOf([deliveryId]));
  return states.get(deliveryId)?.status === 'exhausted';
}
