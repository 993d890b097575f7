import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { FinishedResend, ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { DispatcherMetrics } from '../dispatcher-metrics.ts';
import { reportAttempt, type Settle, type Settled } from './settle-delivery.ts';

export interface SettleResendDeps {
  marks: Pick<ResendMarks, 'finish' | 'askedNumbers'>;
  metrics: DispatcherMetrics;
  logger: Logger;
  nowMs: () => number;
}

export interface Resends {
  /**
   * Does the work when the attempt is still asked for. Copies of its record share a partition, so a
   * twin under way here is the only one there can be.
   */
  once: (due: DueAttempt, work: () => Promise<void>) => Promise<void>;
  /** Records the one attempt of a resend. Nothing follows from a failure: a resend is not retried. */
  settle: Settle;
}

const LOOK_UPS = { maxItems: 200, lingerMs: 1, maxInFlight: 2 };
const SETTLEMENTS = { maxItems: 200, lingerMs: 20, maxInFlight: 2 };

export function createResends(deps: SettleResendDeps): Resends {
  const asked = createBatcher<DueAttempt, boolean>({
    ...LOOK_UPS,
    run: async (batch) => {
      const numbers = await keepTrying(() =>
        deps.marks.askedNumbers(batch.map(({ deliveryId }) => deliveryId)),
      );
      return batch.map((due) => numbers.get(due.deliveryId) === due.attemptNumber);
    },
  });
  const underWay = new Set<string>();

  async function once(due: DueAttempt, work: () => Promise<void>): Promise<void> {
    const identity = due.attemptId;
    if (underWay.has(identity)) return;
    underWay.add(identity);
    try {
      if (await asked.add(due)) await work();
    } finally {
      underWay.delete(identity);
    }
  }

  const settlements = createBatcher<Settled, undefined>({
    ...SETTLEMENTS,
    run: async (batch) => {
      const finished = batch.map((each) => finishedOf(deps, each));
      await keepTrying(() => deps.marks.finish(finished), {
        onFailure: (error) => {
          deps.logger.warn({ err: error, size: batch.length }, 'resends wait to be recorded');
        },
      });
      for (const settled of batch) report(deps, settled);
      return batch.map(() => undefined);
    },
  });
  return { once, settle: settlements.add };
}

function finishedOf({ nowMs }: SettleResendDeps, settled: Settled): FinishedResend {
  const { due } = settled;
  const attempt = 'attempt' in settled ? settled.attempt : null;
  return { deliveryId: due.deliveryId, attemptNumber: due.attemptNumber, attempt, atMs: nowMs() };
}

function report(deps: SettleResendDeps, settled: Settled): void {
  if ('attempt' in settled) {
    reportAttempt(deps, settled);
    return;
  }
  const { due, reason } = settled;
  const { messageId } = due;
  deps.logger.info({ messageId, deliveryId: due.deliveryId, reason }, 'resend not made');
}
