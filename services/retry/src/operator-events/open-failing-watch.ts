import { randomUUID } from 'node:crypto';
import type { TopicNames } from '@posthorn/domain/records/topics.ts';
import { createAuditLog } from '@posthorn/platform/audit/audit-log.ts';
import { createAuditMetrics } from '@posthorn/platform/audit/audit-metrics.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createAuditStore } from '@posthorn/platform/mongo/audit/audit-events.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases/leases.ts';
import { createStatsQueries } from '@posthorn/platform/mongo/stats/stats-queries.ts';
import { createFailingWebhooks } from '@posthorn/platform/mongo/webhooks/failing-webhooks.ts';
import { eventRecord } from '@posthorn/platform/operator-events/event-record.ts';
import { systemClockMs, systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { RetryConfig } from '../config.ts';
import { createFailingWatch } from './watch-failing-endpoints.ts';

interface Wires {
  db: Database;
  records: Pick<RecordLog, 'publish'>;
  topics: Pick<TopicNames, 'operatorEvents'>;
}

/** Starts to look for endpoints that fail for long. */
export function openFailingWatch(
  { config, logger, registry, lifecycle, keepTrying }: ServiceContext<RetryConfig>,
  { db, records, topics }: Wires,
): void {
  const watch = createFailingWatch({
    holder: randomUUID(),
    autoDisableAfterMs: config.AUTO_DISABLE_AFTER ?? null,
    leases: createLeaseStore(db),
    stats: createStatsQueries(db),
    webhooks: createFailingWebhooks(db),
    audit: createAuditLog({
      store: createAuditStore(db),
      refusalOf: () => null,
      observer: createAuditMetrics(registry, logger),
      newId: systemIds,
      nowMs: systemClockMs,
    }),
    async tell(incident) {
      const atMs = systemClockMs();
      const event = {
        id: systemIds('oev'),
        ...incident,
        count: 1,
        firstAtMs: atMs,
        lastAtMs: atMs,
      };
      await records.publish([eventRecord(topics.operatorEvents, event)]);
    },
    keepTrying,
    logger,
    nowMs: systemClockMs,
  });
  watch.start();
  lifecycle.onStop('watch of failing endpoints', watch.stop);
}
