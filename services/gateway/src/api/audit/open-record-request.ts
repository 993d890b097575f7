import { createAuditLog } from '@posthorn/platform/audit/audit-log.ts';
import { createAuditMetrics } from '@posthorn/platform/audit/audit-metrics.ts';
import { createAuditStore } from '@posthorn/platform/mongo/audit/audit-events.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { mongo } from 'mongoose';
import type { GatewayConfig } from '../../config.ts';
import { createRecordRequest, refusalOf, type RecordRequest } from './record-request.ts';

/** Opens the audit log of the gateway. */
export function openRecordRequest(
  { registry, logger }: ServiceContext<GatewayConfig>,
  db: mongo.Db,
): RecordRequest {
  const log = createAuditLog({
    store: createAuditStore(db),
    refusalOf,
    observer: createAuditMetrics(registry, logger),
    newId: systemIds,
    nowMs: systemClockMs,
  });
  return createRecordRequest(log);
}
