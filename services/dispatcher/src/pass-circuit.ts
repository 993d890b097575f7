import type { DueAttempt } from '@posthorn/domain/records.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Counter } from 'prom-client';
import type { CircuitBreakers, Endpoint, Permit } from './circuit-breakers.ts';
import type { Obstacle } from './judge-endpoint.ts';
import { timeIn, type PutOff } from './put-off.ts';

/** Header of a record that an open circuit put off: since when, in milliseconds since 1970. */
export const DEFERRED_SINCE_HEADER = 'deferred-since';

/** After so long the attempt is made whatever the circuit says: a delivery must come to its end. */
const MADE_ANYWAY_AFTER_MS = 12 * 3_600_000;
/** A record that has waited comes back after this many times its wait: 5 minutes, 30, 2 hours, 10. */
const GROWTH = 3;
/** An endpoint that is well answers its probe sooner, and nothing need be put off for it. */
const PROBE_PATIENCE_MS = 500;

export interface PassCircuitDeps {
  circuits: Pick<CircuitBreakers, 'obstacle' | 'permit'>;
  putOff: PutOff;
  deferrals: Counter;
  /** The longest delay topic there is. */
  longestDelayMs: number;
  wait: (ms: number) => Promise<unknown>;
  nowMs: () => number;
}

/** Without using up an attempt, an open circuit puts its records off; they come back by themselves. */
export interface PassCircuit {
  /** Before it stands in a line: true when it was put off. */
  isPutOff: (record: LogRecord, due: DueAttempt, endpoint: Endpoint) => Promise<boolean>;
  /** When it is its turn: a permit that has to be reported on, or null when it was put off. */
  enter: (record: LogRecord, due: DueAttempt, endpoint: Endpoint) => Promise<Permit | null>;
}

/**
 * An open circuit puts its records off, each time for longer, so that a dead endpoint with a large
 * backlog stirs the backlog a few times a day and not all the time.
 */
export function createPassCircuit(deps: PassCircuitDeps): PassCircuit {
  const { circuits, nowMs } = deps;
  return {
    async isPutOff(record, due, endpoint) {
      const obstacle = obstacleTo(deps, record, due, endpoint);
      const probeMs = obstacle?.probe ? nowMs() - obstacle.probe.sinceMs : Infinity;
      if (!obstacle || probeMs < PROBE_PATIENCE_MS) return false;
      await putOff(deps, record, due, obstacle);
      return true;
    },
    async enter(record, due, endpoint) {
      const patientUntilMs = nowMs() + PROBE_PATIENCE_MS;
      for (;;) {
        const obstacle = obstacleTo(deps, record, due, endpoint);
        if (!obstacle) return circuits.permit(endpoint);
        const leftMs = patientUntilMs - nowMs();
        if (!obstacle.probe || leftMs <= 0) {
          await putOff(deps, record, due, obstacle);
          return null;
        }
        await Promise.race([obstacle.probe.ended, deps.wait(leftMs)]);
      }
    },
  };
}

function obstacleTo(
  { circuits, nowMs }: PassCircuitDeps,
  { headers }: LogRecord,
  { trigger }: DueAttempt,
  endpoint: Endpoint,
): Obstacle | null {
  const obstacle = circuits.obstacle(endpoint, trigger);
  const sinceMs = timeIn(headers, DEFERRED_SINCE_HEADER) ?? nowMs();
  return nowMs() - sinceMs >= MADE_ANYWAY_AFTER_MS ? null : obstacle;
}

async function putOff(
  deps: PassCircuitDeps,
  record: LogRecord,
  due: DueAttempt,
  { untilMs }: Obstacle,
): Promise<void> {
  const atMs = deps.nowMs();
  const sinceMs = timeIn(record.headers, DEFERRED_SINCE_HEADER) ?? atMs;
  const grownMs = Math.min((atMs - sinceMs) * GROWTH, deps.longestDelayMs);
  const turnAtMs = Math.max(untilMs, atMs + grownMs);
  const headers = { [DEFERRED_SINCE_HEADER]: String(sinceMs) };
  deps.deferrals.inc();
  await deps.putOff(record, due, { turnAtMs, fit: 'cover', headers });
}
