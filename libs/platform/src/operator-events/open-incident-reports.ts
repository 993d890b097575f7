import { Counter, type Registry } from 'prom-client';
import { createLoop } from '../async/loop.ts';
import type { RecordLog } from '../kafka/record-log.ts';
import { systemClockMs, systemIds } from '../service/clock-and-ids.ts';
import type { Lifecycle } from '../service/lifecycle.ts';
import type { Logger } from '../service/logger.ts';
import { eventRecord } from './event-record.ts';
import { createIncidentReports, type ReportIncident } from './report-incidents.ts';

const EVERY_MS = 1_000;

interface Context {
  lifecycle: Lifecycle;
  logger: Logger;
  registry: Registry;
}

/** Starts to publish incidents for the operator. A stop publishes what is left. */
export function openIncidentReports(
  { lifecycle, logger, registry }: Context,
  { records, topic }: { records: Pick<RecordLog, 'publish'>; topic: string },
): ReportIncident {
  const dropped = createIncidentMetrics(registry);
  const reports = createIncidentReports({
    publish: (events) => records.publish(events.map((event) => eventRecord(topic, event))),
    newId: () => systemIds('oev'),
    nowMs: systemClockMs,
    onDropped: () => {
      dropped.inc();
    },
  });
  const loop = createLoop({
    name: 'operator events',
    everyMs: EVERY_MS,
    run: reports.tick,
    logger,
  });
  loop.start();
  lifecycle.onStop('operator events', async () => {
    await loop.stop();
    await reports.flush();
  });
  return reports.report;
}

export function createIncidentMetrics(registry: Registry): Counter {
  return new Counter({
    name: 'posthorn_operator_events_dropped_total',
    help: 'Incidents that the operator is not told of, because too many others were remembered.',
    registers: [registry],
  });
}
