import { logFieldsOf } from '@posthorn/domain/records/log-fields.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { FinishedResend, ResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { CountAttempt } from '@posthorn/platform/stats/count-attempts.ts';
import type { DispatcherMetrics } from '../dispatcher-metrics.ts';
import type { ErasePayloads } from './erase-payloads.ts';
import {
  isSuccess,
  reportAttempt,
  SETTLE_BATCH,
  type AnnounceAttempt,
  type Settle,
  type Settled,
} from './settle-delivery.ts';

export interface SettleResendDeps {
  marks: Pick<ResendMarks, 'finish'>;
  erasePayloads: ErasePayloads;
  keepTryingWhileDraining: KeepTrying;
  metrics: DispatcherMetrics;
  count: CountAttempt;
  announce: AnnounceAttempt;
  logger: Logger;
  nowMs: () => number;
}

/**
 * Records the one attempt of a resend and ends its mark. Nothing follows from a failure: a resend is
 * not retried (docs/contract.md C11.1).
 */
export function createSettleResend(deps: SettleResendDeps): Settle {
  const batcher = createBatcher<Settled, undefined>({
    ...SETTLE_BATCH,
    run: async (batch) => {
      const finished = batch.map((settled) => finishedOf(deps, settled));
      await deps.keepTryingWhileDraining(
        'record resends',
        () => deps.marks.finish(finished),
        () => ({ size: batch.length }),
      );
      await deps.erasePayloads(batch.filter(isSuccess).map(({ due }) => due));
      for (const settled of batch) report(deps, settled);
      return batch.map(() => undefined);
    },
  });
  return batcher.add;
}

function finishedOf({ nowMs }: SettleResendDeps, settled: Settled): FinishedResend {
  const { deliveryId, attemptNumber } = settled.due;
  const attempt = settled.kind === 'attempted' ? settled.attempt : null;
  return { deliveryId, attemptNumber, attempt, atMs: nowMs() };
}

function report(deps: SettleResendDeps, settled: Settled): void {
  switch (settled.kind) {
    case 'attempted':
      reportAttempt(deps, settled);
      return;
    case 'cancelled': {
      const fields = { ...logFieldsOf(settled.due), reason: settled.reason };
      deps.logger.info(fields, 'resend not made');
    }
  }
}
