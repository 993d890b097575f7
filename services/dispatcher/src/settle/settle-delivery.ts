import {
  endedAtMs,
  refOf,
  type Attempt,
  type CancelReason,
} from '@posthorn/domain/message/delivery.ts';
import { logFieldsOf } from '@posthorn/domain/records/log-fields.ts';
import { encodeDeliveryFailed, type DueAttempt } from '@posthorn/domain/records/records.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { RetrySchedule } from '@posthorn/domain/schedule/retry-schedule.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  settleAttempt,
  settleCancelled,
  type SettledDelivery,
} from '@posthorn/domain/delivery-lifecycle/settlement.ts';
import type { CountAttempt } from '@posthorn/platform/stats/count-attempts.ts';
import type { DispatcherMetrics } from '../dispatcher-metrics.ts';
import type { ErasePayloads } from './erase-payloads.ts';
import type { RecordAttempts } from './record-attempts.ts';

/** An attempt that was made. */
export interface SettledAttempt {
  kind: 'attempted';
  due: DueAttempt;
  attempt: Attempt;
  /** The app of the webhook; null for a global one. */
  appId: string | null;
  /** Bytes of the payload that was sent; 0 when nothing was. */
  payloadBytes: number;
  headers: LogRecord['headers'];
  /** Why the delivery ends with this failed attempt; null when it does not, and after a success. */
  cancelReason: CancelReason | null;
  /** It was recorded and counted before; only its failure may not have been published. */
  isRecorded: boolean;
}

/** What came of a due attempt: it was made, or it was not to be made any more. */
export type Settled = SettledAttempt | { kind: 'cancelled'; due: DueAttempt; reason: CancelReason };

/** Resolves when the outcome is stored and Kafka has acknowledged what follows from it. */
export type Settle = (settled: Settled) => Promise<void>;

/** Tells whoever watches a company of its attempts. */
export type AnnounceAttempt = (settled: SettledAttempt) => void;

export interface SettleDeliveryDeps {
  recordAttempts: RecordAttempts;
  erasePayloads: ErasePayloads;
  records: RecordLog;
  failedTopic: string;
  keepTrying: KeepTrying;
  /** An outcome that this process does not record is made again by another one. */
  keepTryingWhileDraining: KeepTrying;
  schedule: RetrySchedule;
  metrics: DispatcherMetrics;
  count: CountAttempt;
  announce: AnnounceAttempt;
  logger: Logger;
  nowMs: () => number;
}

/**
 * Nobody waits for a settlement, and a batch costs more than what is in it (docs/performance.md, Tried). What was
 * answered within the linger before a crash is sent twice: a test holds the pages that say so against it.
 */
export const SETTLE_BATCH = { maxItems: 200, lingerMs: 40, maxInFlight: 2 };

/**
 * Settle: stores the outcome of an attempt, then publishes what follows from it. Only then may
 * the offset of its record be committed. A crash in between repeats the step, and ids make the repeat
 * harmless.
 */
export function createSettleDelivery(deps: SettleDeliveryDeps): Settle {
  const batcher = createBatcher<Settled, undefined>({
    ...SETTLE_BATCH,
    run: async (batch) => {
      await settleBatch(deps, batch);
      return batch.map(() => undefined);
    },
  });
  return batcher.add;
}

async function settleBatch(deps: SettleDeliveryDeps, batch: Settled[]): Promise<void> {
  const deliveries = batch.map((settled) => toDelivery(deps, settled));
  const unfinished = await deps.keepTryingWhileDraining(
    'record outcomes',
    () => deps.recordAttempts(deliveries),
    () => ({ size: batch.length }),
  );
  await deps.erasePayloads(batch.filter(isSuccess).map(({ due }) => due));
  const failures = batch.flatMap((settled, index) =>
    settled.kind === 'attempted' && unfinished.has(requiredAt(deliveries, index, 'delivery').id)
      ? [failureRecord(deps, settled)]
      : [],
  );
  await deps.keepTrying(
    'publish failures',
    () => deps.records.publish(failures),
    () => ({ size: failures.length }),
  );
  for (const settled of batch) report(deps, settled);
}

/** True when its delivery may be delivered now. */
export function isSuccess(settled: Settled): boolean {
  return settled.kind === 'attempted' && settled.attempt.outcome === 'success';
}

function toDelivery({ schedule, nowMs }: SettleDeliveryDeps, settled: Settled): SettledDelivery {
  switch (settled.kind) {
    case 'attempted':
      return settleAttempt(settled.due, settled.attempt, settled.cancelReason, schedule);
    case 'cancelled':
      return settleCancelled(settled.due, settled.reason, nowMs());
  }
}

function failureRecord(
  { failedTopic }: SettleDeliveryDeps,
  settled: SettledAttempt,
): OutgoingRecord {
  const { due, attempt, headers } = settled;
  const value = encodeDeliveryFailed({
    ...refOf(due),
    attemptNumber: attempt.number,
    endedAtMs: endedAtMs(attempt),
    outcome: attempt.outcome,
    statusCode: attempt.statusCode,
  });
  return { topic: failedTopic, key: due.webhookId, value, headers };
}

function report(deps: SettleDeliveryDeps, settled: Settled): void {
  switch (settled.kind) {
    case 'attempted':
      if (!settled.isRecorded) reportAttempt(deps, settled);
      if (settled.cancelReason) reportCancelled(deps, settled.due, settled.cancelReason);
      return;
    case 'cancelled':
      reportCancelled(deps, settled.due, settled.reason);
  }
}

function reportCancelled(
  { metrics, logger }: SettleDeliveryDeps,
  due: DueAttempt,
  reason: CancelReason,
): void {
  metrics.finished.inc({ result: 'cancelled' });
  logger.info({ ...logFieldsOf(due), reason }, 'delivery cancelled');
}

type ReportDeps = Pick<SettleDeliveryDeps, 'metrics' | 'count' | 'announce' | 'logger'>;

/** Counts an attempt, tells of it, and writes its log line. */
export function reportAttempt(
  { metrics, count, announce, logger }: ReportDeps,
  settled: SettledAttempt,
): void {
  const { due, attempt, appId, payloadBytes, headers } = settled;
  const { number, outcome, failureReason, statusCode, durationMs } = attempt;
  metrics.observe(due, attempt);
  const { companyId, webhookId } = due;
  count({ companyId, webhookId, appId }, { attempt, payloadBytes });
  announce(settled);
  const level = outcome === 'success' ? 'debug' : 'info';
  if (!logger.isLevelEnabled(level)) return;
  logger[level](
    {
      requestId: headers.requestId,
      ...logFieldsOf(due),
      attempt: number,
      outcome,
      failureReason,
      statusCode,
      durationMs,
    },
    'attempt made',
  );
}
