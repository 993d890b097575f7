import type { OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import { openIncidentReports } from '@posthorn/platform/operator-events/open-incident-reports.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from '../config.ts';
import { createQuotas, describeNearQuota, FIXED_QUOTAS, type Quotas } from './quotas.ts';

/** Opens the quotas, and tells the operator of companies that are near one. */
export function openQuotas(
  context: ServiceContext<GatewayConfig>,
  { records, topics }: Pick<OpenRecordLog, 'records' | 'topics'>,
): Quotas {
  const report = openIncidentReports(context, { records, topic: topics.operatorEvents });
  return createQuotas({
    limits: { ...context.config, ...FIXED_QUOTAS },
    monotonicMs: monotonicClockMs,
    onNear(near) {
      const { companyId } = near;
      report({ type: 'quota.near', companyId, webhookId: null, detail: describeNearQuota(near) });
    },
  });
}
