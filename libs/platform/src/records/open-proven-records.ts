import { createDeadLetters, type DeadLetters } from './dead-letters.ts';
import type { OpenRecordLog } from '../kafka/kafka-record-log.ts';
import type { RecordLog } from '../kafka/record-log.ts';
import { openIncidentReports, type ReportIncident } from './operator-incidents.ts';
import type { ServiceContext } from '../service/run-service.ts';
import { provenOnly } from './proven-records.ts';

type Context = ServiceContext<{ TOPIC_PREFIX: string }>;

/** The log of a service that reads records: those of strangers become dead letters. */
export function openProvenRecords(
  context: Context,
  { records, mac, topics }: Pick<OpenRecordLog, 'records' | 'mac' | 'topics'>,
): { records: RecordLog; deadLetters: DeadLetters; report: ReportIncident } {
  const { config, logger, registry } = context;
  const prefix = config.TOPIC_PREFIX;
  const report = openIncidentReports(context, { records, topic: topics.operatorEvents });
  const letters = { records, prefix, logger, registry, report };
  const deadLetters = createDeadLetters(topics.deadLetters, letters);
  return { records: provenOnly(records, { prefix, mac, deadLetters }), deadLetters, report };
}
