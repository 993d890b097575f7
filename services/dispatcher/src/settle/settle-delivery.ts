import {
  endedAtMs,
  settle as settlementOf,
  type Attempt,
  type CancelReason,
} from '@posthorn/domain/delivery.ts';
import { encodeDeliveryFailed, refOf, type DueAttempt } from '@posthorn/domain/records/records.ts';
import type { RetrySchedule } from '@posthorn/domain/schedule/retry-schedule.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { SettledDelivery } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { DispatcherMetrics } from '../dispatcher-metrics.ts';
import type { RecordAttempts } from './record-attempts.ts';

/** An attempt that was made. */
export interface SettledAttempt {
  due: DueAttempt;
  attempt: Attempt;
  headers: LogRecord['headers'];
  /** The webhook was deleted or disabled meanwhile: a failure is the last attempt. */
  reason?: CancelReason | null;
  /** It was recorded and counted before; only its consequence may be missing. */
  isKnown?: true;
}

/** What came of a due attempt: it was made, or it was not to be made any more. */
export type Settled = SettledAttempt | { due: DueAttempt; reason: CancelReason };

/** Resolves when the outcome is recorded and its consequence acknowledged by Kafka. */
export type Settle = (settled: Settled) => Promise<void>;

export interface SettleDeps {
  recordAttempts: RecordAttempts;
  log: RecordLog;
  failedTopic: string;
  schedule: RetrySchedule;
  metrics: DispatcherMetrics;
  logger: Logger;
  nowMs: () => number;
}

/** Nobody waits for a settlement, so it may linger: 20 ms save a third of the dispatcher at 650/s. */
const BATCH = { maxItems: 200, lingerMs: 20, maxInFlight: 2 };

/**
 * Step 3, settle: record first, then publish the consequence; only then is the record done. A crash
 * in between repeats the step, and ids make the repeat harmless.
 */
export function createSettle(deps: SettleDeps): Settle {
  const batcher = createBatcher<Settled, undefined>({
    ...BATCH,
    run: async (batch) => {
      await settleBatch(deps, batch);
      return batch.map(() => undefined);
    },
  });
  return (settled) => batcher.add(settled);
}

async function settleBatch(deps: SettleDeps, batch: Settled[]): Promise<void> {
  const deliveries = batch.map((settled) => toDelivery(deps, settled));
  const unfinished = await keepTrying(() => deps.recordAttempts(deliveries), {
    onFailure: (error) => {
      deps.logger.warn({ err: error, size: batch.length }, 'outcomes wait to be recorded');
    },
  });
  const failures = batch.flatMap((settled, index) =>
    unfinished.has(deliveries[index]?.id ?? '') ? failureRecord(deps, settled) : [],
  );
  await keepTrying(() => deps.log.publish(failures), {
    onFailure: (error) => {
      deps.logger.warn({ err: error, size: failures.length }, 'failures wait to be published');
    },
  });
  for (const settled of batch) report(deps, settled);
}

function toDelivery({ schedule, nowMs }: SettleDeps, settled: Settled): SettledDelivery {
  const { due } = settled;
  const { deliveryId: id, messageId, webhookId, companyId, appId, createdAtMs } = due;
  const common = { id, messageId, webhookId, companyId, appId, createdAtMs };
  if (!('attempt' in settled)) {
    const { reason } = settled;
    const updatedAtMs = nowMs();
    return {
      ...common,
      status: 'cancelled',
      reason,
      attempt: null,
      nextAttemptAtMs: null,
      updatedAtMs,
    };
  }
  const { attempt, reason } = settled;
  const made = { ...common, attempt, updatedAtMs: endedAtMs(attempt) };
  if (reason && attempt.outcome !== 'success') {
    return { ...made, status: 'cancelled', reason, nextAttemptAtMs: null };
  }
  return { ...made, ...settlementOf(attempt, schedule), reason: null };
}

function failureRecord({ failedTopic }: SettleDeps, settled: Settled): OutgoingRecord[] {
  if (!('attempt' in settled)) return [];
  const { due, attempt, headers } = settled;
  const value = encodeDeliveryFailed({
    ...refOf(due),
    attemptNumber: attempt.number,
    endedAtMs: endedAtMs(attempt),
    outcome: attempt.outcome,
    statusCode: attempt.statusCode,
  });
  return [{ topic: failedTopic, key: due.webhookId, value, headers }];
}

function report(deps: SettleDeps, settled: Settled): void {
  if ('attempt' in settled) {
    if (!settled.isKnown) reportAttempt(deps, settled);
    if (!settled.reason || settled.attempt.outcome === 'success') return;
  }
  const { due, reason } = settled;
  const { messageId, deliveryId } = due;
  deps.metrics.finished.inc({ result: 'cancelled' });
  deps.logger.info({ messageId, deliveryId, reason }, 'delivery cancelled');
}

/** Counts an attempt and writes its log line. */
export function reportAttempt(
  { metrics, logger }: Pick<SettleDeps, 'metrics' | 'logger'>,
  { due, attempt, headers }: Extract<Settled, { attempt: Attempt }>,
): void {
  const { messageId, deliveryId } = due;
  const { number, outcome, statusCode, durationMs } = attempt;
  metrics.observe(due, attempt);
  const level = outcome === 'success' ? 'debug' : 'info';
  if (!logger.isLevelEnabled(level)) return;
  logger[level](
    {
      requestId: headers.requestId,
      messageId,
      deliveryId,
      attempt: number,
      outcome,
      statusCode,
      durationMs,
    },
    'attempt made',
  );
}
