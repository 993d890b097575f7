import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createPayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { CountAttempt } from '@posthorn/platform/stats/count-attempts.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DispatcherConfig } from '../config.ts';
import type { DispatcherMetrics } from '../dispatcher-metrics.ts';
import { createErasePayloads, type ErasePayloads } from './erase-payloads.ts';
import { createRecordAttempts } from './record-attempts.ts';
import { createSettleDelivery, type AnnounceAttempt, type Settle } from './settle-delivery.ts';
import { createSettleResend } from './settle-resend.ts';

interface SettleParts {
  db: Database;
  records: RecordLog;
  metrics: DispatcherMetrics;
  count: CountAttempt;
  announce: AnnounceAttempt;
  failedTopic: string;
}

export function openSettle(
  { config, logger, keepTrying, keepTryingWhileDraining }: ServiceContext<DispatcherConfig>,
  { db, records, metrics, count, announce, failedTopic }: SettleParts,
): { settleDelivery: Settle; settleResend: Settle; erasePayloads: ErasePayloads } {
  const erasePayloads = createErasePayloads({
    erasure: createPayloadErasure(db),
    keepTryingWhileDraining,
    monotonicMs: monotonicClockMs,
  });
  return {
    erasePayloads,
    settleDelivery: createSettleDelivery({
      erasePayloads,
      recordAttempts: createRecordAttempts(createDeliveryStore(db)),
      records,
      failedTopic,
      schedule: config.RETRY_DELAYS,
      keepTrying,
      keepTryingWhileDraining,
      metrics,
      count,
      announce,
      logger,
      nowMs: systemClockMs,
    }),
    settleResend: createSettleResend({
      erasePayloads,
      marks: createResendMarks(db),
      keepTryingWhileDraining,
      metrics,
      count,
      announce,
      logger,
      nowMs: systemClockMs,
    }),
  };
}
