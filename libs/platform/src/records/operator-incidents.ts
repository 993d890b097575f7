import {
  encodeOperatorEvent,
  type OperatorEvent,
  type OperatorIncident,
} from '@posthorn/domain/operator-events.ts';
import { Counter, type Registry } from 'prom-client';
import { createLoop } from '../async/loop.ts';
import type { OutgoingRecord, RecordLog } from '../kafka/record-log.ts';
import { systemClockMs, systemIds } from '../service/clock-and-ids.ts';
import type { Logger } from '../service/logger.ts';
import type { Lifecycle } from '../service/run-service.ts';

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

/** Tells the operator of an incident, now or with others of its kind. Costs no await; never throws. */
export type ReportIncident = (incident: OperatorIncident) => void;

export interface IncidentReports {
  report: ReportIncident;
  /** Publishes what is due. Resolves when Kafka has it; when it rejects, the next tick tries again. */
  tick: () => Promise<void>;
  /** Publishes everything that was not published yet. */
  flush: () => Promise<void>;
  /** Webhooks and types that are remembered. */
  size: () => number;
}

interface IncidentReportsDeps {
  publish: (events: readonly OperatorEvent[]) => Promise<void>;
  newId: () => string;
  nowMs: () => number;
  /** Called with each incident that is not told, because too many others are remembered. */
  onDropped: () => void;
}

/** Further incidents of one type at one webhook are told together, this long after the last event. */
const QUIET_MS = 3_600_000;
/** Of each process: at 300 bytes, 3 MiB. */
export const MAX_REMEMBERED = 10_000;

interface Remembered {
  /** What is not published yet; null when everything is. */
  event: OperatorEvent | null;
  /** When the last event was published; -Infinity before the first. */
  publishedAtMs: number;
}

/**
 * The first incident of a type at a webhook is told at once, those of the next hour together: a storm of failures is
 * one event for each webhook, and one more an hour later.
 */
export function createIncidentReports(deps: IncidentReportsDeps): IncidentReports {
  const remembered = new Map<string, Remembered>();

  function report(incident: OperatorIncident): void {
    const key = `${incident.type}/${incident.webhookId ?? incident.companyId ?? ''}`;
    const known = remembered.get(key);
    if (!known && remembered.size >= MAX_REMEMBERED) {
      deps.onDropped();
      return;
    }
    const entry = known ?? { event: null, publishedAtMs: -Infinity };
    entry.event = added(deps, entry.event, incident);
    remembered.set(key, entry);
  }

  async function publish(dueAtMs: number): Promise<void> {
    const due = [...remembered.values()].filter(
      ({ event, publishedAtMs }) => event && publishedAtMs <= dueAtMs,
    );
    if (due.length === 0) return;
    const taken = due.map(({ event }) => event);
    await deps.publish(taken.filter((event) => event !== null));
    const atMs = deps.nowMs();
    due.forEach((entry, index) => {
      entry.publishedAtMs = atMs;
      // What came meanwhile is a part of an event that was published without it.
      const { event } = entry;
      const published = taken[index];
      const rest = (event?.count ?? 0) - (published?.count ?? 0);
      entry.event = event && rest > 0 ? { ...event, id: deps.newId(), count: rest } : null;
    });
  }

  function forget(): void {
    const before = deps.nowMs() - QUIET_MS;
    for (const [key, { event, publishedAtMs }] of remembered) {
      if (event === null && publishedAtMs <= before) remembered.delete(key);
    }
  }

  return {
    report,
    async tick() {
      await publish(deps.nowMs() - QUIET_MS);
      forget();
    },
    flush: () => publish(Infinity),
    size: () => remembered.size,
  };
}

/** A new event, or the same one with one incident more. */
function added(
  { newId, nowMs }: IncidentReportsDeps,
  event: OperatorEvent | null,
  incident: OperatorIncident,
): OperatorEvent {
  const lastAtMs = nowMs();
  if (!event) return { id: newId(), ...incident, count: 1, firstAtMs: lastAtMs, lastAtMs };
  return { ...event, detail: incident.detail, count: event.count + 1, lastAtMs };
}

/** The events of one webhook are in one partition, in their order. */
export function eventRecord(topic: string, event: OperatorEvent): OutgoingRecord {
  const key = event.webhookId ?? event.companyId ?? '';
  return { topic, key, value: encodeOperatorEvent(event) };
}
