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

/** Further incidents of one type at one webhook are reported together, this long after the last event. */
const QUIET_MS = 3_600_000;
/** The bound of each process: at 300 bytes, 3 MiB. */
export const MAX_REMEMBERED = 10_000;

/** Reports an incident to the operator, now or with others of its kind. Costs no await; never throws. */
export type ReportIncident = (incident: OperatorIncident) => void;

/** Starts to publish incidents for the operator. A stop publishes what is left. */
export function openIncidentReports(
  { lifecycle, logger, registry }: Context,
  { records, topic }: { records: Pick<RecordLog, 'publish'>; topic: string },
): ReportIncident {
  const dropped = createIncidentMetrics(registry);
  const reports = new IncidentReports({
    publish: (events) => records.publish(events.map((event) => eventRecord(topic, event))),
    newId: () => systemIds('oev'),
    nowMs: systemClockMs,
    onDropped() {
      dropped.inc();
    },
  });
  const loop = createLoop({
    name: 'operator events',
    everyMs: EVERY_MS,
    run: () => reports.tick(),
    logger,
  });
  loop.start();
  lifecycle.onStop('operator events', async () => {
    await loop.stop();
    await reports.flush();
  });
  return (incident) => {
    reports.report(incident);
  };
}

export function createIncidentMetrics(registry: Registry): Counter {
  return new Counter({
    name: 'posthorn_operator_events_dropped_total',
    help: 'Incidents that the operator is not told of, because too many others were remembered.',
    registers: [registry],
  });
}

interface IncidentReportsDeps {
  publish: (events: readonly OperatorEvent[]) => Promise<void>;
  newId: () => string;
  nowMs: () => number;
  /** Called with each incident that is not reported, because too many others are remembered. */
  onDropped: () => void;
}

interface Remembered {
  /** The incidents that are not published yet; null when all are. */
  event: OperatorEvent | null;
  /** When the last event was published; -Infinity before the first. */
  publishedAtMs: number;
}

/**
 * The first incident of a type at a webhook is reported at once, those of the next hour together: a storm of failures is
 * one event for each webhook, and one more an hour later.
 */
export class IncidentReports {
  readonly #deps: IncidentReportsDeps;
  /** By type and webhook. */
  readonly #remembered = new Map<string, Remembered>();

  constructor(deps: IncidentReportsDeps) {
    this.#deps = deps;
  }

  report(incident: OperatorIncident): void {
    const key = `${incident.type}/${incident.webhookId ?? incident.companyId ?? ''}`;
    const known = this.#remembered.get(key);
    if (!known && this.#remembered.size >= MAX_REMEMBERED) {
      this.#deps.onDropped();
      return;
    }
    const entry = known ?? { event: null, publishedAtMs: -Infinity };
    entry.event = this.#added(entry.event, incident);
    this.#remembered.set(key, entry);
  }

  /** Publishes what is due. Resolves when Kafka has it; when it rejects, the next tick tries again. */
  async tick(): Promise<void> {
    await this.#publish(this.#deps.nowMs() - QUIET_MS);
    const before = this.#deps.nowMs() - QUIET_MS;
    for (const [key, { event, publishedAtMs }] of this.#remembered) {
      if (event === null && publishedAtMs <= before) this.#remembered.delete(key);
    }
  }

  /** Publishes everything that was not published yet. */
  flush(): Promise<void> {
    return this.#publish(Infinity);
  }

  /** Webhooks and types that are remembered. */
  size(): number {
    return this.#remembered.size;
  }

  async #publish(dueAtMs: number): Promise<void> {
    const due = [...this.#remembered.values()].flatMap((entry) =>
      entry.event && entry.publishedAtMs <= dueAtMs ? [{ entry, published: entry.event }] : [],
    );
    if (due.length === 0) return;
    await this.#deps.publish(due.map(({ published }) => published));
    const atMs = this.#deps.nowMs();
    for (const { entry, published } of due) {
      entry.publishedAtMs = atMs;
      // An incident that came meanwhile was added to an event that was published without it.
      const { event } = entry;
      const count = (event?.count ?? 0) - published.count;
      entry.event = event && count > 0 ? { ...event, id: this.#deps.newId(), count } : null;
    }
  }

  /** A new event, or the same one with one incident more. */
  #added(event: OperatorEvent | null, incident: OperatorIncident): OperatorEvent {
    const { newId, nowMs } = this.#deps;
    const lastAtMs = nowMs();
    if (!event) return { id: newId(), ...incident, count: 1, firstAtMs: lastAtMs, lastAtMs };
    return { ...event, detail: incident.detail, count: event.count + 1, lastAtMs };
  }
}

/** The events of one webhook are in one partition, in their order. */
export function eventRecord(topic: string, event: OperatorEvent): OutgoingRecord {
  const key = event.webhookId ?? event.companyId ?? '';
  return { topic, key, value: encodeOperatorEvent(event) };
}
