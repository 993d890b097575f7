import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { DueAttempt } from '@posthorn/domain/records.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { Logger } from '@posthorn/platform/logger.ts';
import type { FinishedResend, ResendMarks } from '@posthorn/platform/mongo/resend-marks.ts';
import type { DispatcherMetrics } from './dispatcher-metrics.ts';
import { reportAttempt, type Settle, type Settled } from './settle-delivery.ts';

export interface SettleResendDeps {
  marks: Pick<ResendMarks, 'finish' | 'askedNumbers'>;
  metrics: DispatcherMetrics;
  logger: Logger;
  nowMs: () => number;
}

export interface Resends {
  isWanted: (due: DueAttempt) => Promise<boolean>;
  /** Records the one attempt of a resend. Nothing follows from a failure: a resend is not retried. */
  settle: Settle;
}

const LOOK_UPS = { maxItems: 200, lingerMs: 1, maxInFlight: 2 };
const SETTLEMENTS = { maxItems: 200, lingerMs: 20, maxInFlight: 2 };

export function createResends(deps: SettleResendDeps): Resends {
  const asked = createBatcher<DueAttempt, boolean>({
    ...LOOK_UPS,
    run: async (batch) => {
      const numbers = await keepTrying(() => deps.marks.askedNumbers(batch.map(idOf)));
      return batch.map((due) => numbers.get(idOf(due)) === due.attemptNumber);
    },
  });
  const settlements = createBatcher<Settled, undefined>({
    ...SETTLEMENTS,
    run: async (batch) => {
      await keepTrying(() => deps.marks.finish(batch.map((each) => finishedOf(deps, each))));
      for (const settled of batch) report(deps, settled);
      return batch.map(() => undefined);
    },
  });
  return { isWanted: asked.add, settle: settlements.add };
}

function idOf({ messageId, webhookId }: DueAttempt): string {
  return deliveryIdOf(messageId, webhookId);
}

function finishedOf({ nowMs }: SettleResendDeps, settled: Settled): FinishedResend {
  const { due } = settled;
  const attempt = 'attempt' in settled ? settled.attempt : null;
  return { deliveryId: idOf(due), attemptNumber: due.attemptNumber, attempt, atMs: nowMs() };
}

function report(deps: SettleResendDeps, settled: Settled): void {
  if ('attempt' in settled) {
    reportAttempt(deps, settled);
    return;
  }
  const { due, reason } = settled;
  const { messageId } = due;
  deps.logger.info({ messageId, deliveryId: idOf(due), reason }, 'resend not made');
}
