import type { OperatorEvent, OperatorIncident } from '@posthorn/domain/operator-events.ts';

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

export interface IncidentReportsDeps {
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
