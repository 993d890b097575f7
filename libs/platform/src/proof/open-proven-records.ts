import type { Database } from '../mongo/days/days.ts';
import { createDeadLetters, type DeadLetters } from '../dead-letters/dead-letters.ts';
import type { OpenRecordLog } from '../kafka/open-record-log.ts';
import type { RecordLog } from '../kafka/record-log.ts';
import { createDeliveryStore } from '../mongo/deliveries/deliveries.ts';
import { createMessageStore } from '../mongo/messages/messages.ts';
import { openIncidentReports } from '../operator-events/open-incident-reports.ts';
import type { ReportIncident } from '../operator-events/report-incidents.ts';
import { systemClockMs } from '../service/clock-and-ids.ts';
import type { ServiceContext } from '../service/run-service.ts';
import { createConfirmRecord } from './confirm-record.ts';
import { createConfirmedRecords, provenOnly, type ProvenOnlyDeps } from './proven-records.ts';

type Context = ServiceContext<{
  TOPIC_PREFIX: string;
  UNPROVEN_RECORDS: ProvenOnlyDeps['unprovenRecords'];
}>;

/** The log of a service that reads records: those of strangers become dead letters. */
export function openProvenRecords(
  context: Context,
  { records, mac, topics }: Pick<OpenRecordLog, 'records' | 'mac' | 'topics'>,
  db: Database,
): { records: RecordLog; deadLetters: DeadLetters; report: ReportIncident } {
  const { config, logger, registry, keepTrying } = context;
  const prefix = config.TOPIC_PREFIX;
  const report = openIncidentReports(context, { records, topic: topics.operatorEvents });
  const letters = { records, prefix, logger, registry, report };
  const deadLetters = createDeadLetters(topics.deadLetters, letters);
  const confirm = createConfirmRecord({
    prefix,
    messages: createMessageStore(db),
    deliveries: createDeliveryStore(db),
    keepTrying,
    nowMs: systemClockMs,
  });
  const confirmed = createConfirmedRecords(registry);
  const proving = { prefix, mac, unprovenRecords: config.UNPROVEN_RECORDS, confirm };
  return {
    records: provenOnly(records, { ...proving, deadLetters, confirmed }),
    deadLetters,
    report,
  };
}
