import type { DueAttempt } from '@posthorn/domain/records.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { Counter } from 'prom-client';
import { turnAtOf, type PutOff } from './put-off.ts';

export interface PaceDeps {
  putOff: PutOff;
  /** The shortest delay topic there is. */
  shortestDelayMs: number;
  deferrals: Counter;
  wait: (ms: number) => Promise<unknown>;
  /** Monotonic, for the spacing. */
  monotonicMs: () => number;
  nowMs: () => number;
}

/** Resolves true when it is this attempt's turn, false when it was put off and comes back by itself. */
export type Pace = (record: LogRecord, due: DueAttempt, webhook: Webhook) => Promise<boolean>;

interface Lane {
  /** Monotonic. */
  lastTurnMs: number;
  /** Wall clock; turns up to here are given to records that were put off. */
  bookedUntilMs: number;
  waiting: number;
}

/** What waits in memory takes room from other webhooks: together at most a quarter of the window of 2,000. */
const MAX_WAIT_MS = 5_000;
const MAX_WAITING = { inLane: 250, inAll: 500 };
/** Above this many, lanes that nobody waits in are forgotten. */
const MANY_LANES = 10_000;

/**
 * Keeps to `rateLimitPerSecond` by spacing the attempts of one webhook evenly. A webhook's records
 * share a partition, and a partition has one dispatcher: the limit needs no other process. What
 * cannot wait here books a turn behind the others and is parked, without using up an attempt.
 */
export function createPace(deps: PaceDeps): Pace {
  const lanes = new Map<string, Lane>();
  const maxWaitMs = Math.min(MAX_WAIT_MS, deps.shortestDelayMs);
  let waiting = 0;

  function laneOf(id: string): Lane {
    if (lanes.size > MANY_LANES) forgetIdle(lanes, deps);
    const lane = lanes.get(id) ?? { lastTurnMs: -Infinity, bookedUntilMs: 0, waiting: 0 };
    lanes.set(id, lane);
    return lane;
  }

  async function takeTurn(lane: Lane, turnMs: number): Promise<void> {
    lane.lastTurnMs = turnMs;
    lane.waiting += 1;
    waiting += 1;
    if (turnMs > deps.monotonicMs()) await deps.wait(turnMs - deps.monotonicMs());
    lane.waiting -= 1;
    waiting -= 1;
  }

  return async (record, due, { id, rateLimitPerSecond }) => {
    if (rateLimitPerSecond === null) return true;
    const lane = laneOf(id);
    const spacingMs = 1_000 / rateLimitPerSecond;
    const [nowMs, monotonicMs] = [deps.nowMs(), deps.monotonicMs()];
    const turnMs = Math.max(monotonicMs, lane.lastTurnMs + spacingMs);
    const bookedMs = turnAtOf(record, nowMs);
    const isNear = (bookedMs ?? lane.bookedUntilMs) <= nowMs + maxWaitMs;
    const hasRoom = lane.waiting < MAX_WAITING.inLane && waiting < MAX_WAITING.inAll;
    if (isNear && hasRoom && turnMs - monotonicMs <= maxWaitMs) {
      await takeTurn(lane, turnMs);
      return true;
    }
    const turnAtMs =
      bookedMs !== null && bookedMs > nowMs ? bookedMs : book(lane, nowMs, spacingMs);
    await deps.putOff(record, due, { turnAtMs, fit: 'before' });
    deps.deferrals.inc();
    return false;
  };
}

/** Behind all turns that are booked, and behind those that wait in memory. */
function book(lane: Lane, nowMs: number, spacingMs: number): number {
  lane.bookedUntilMs = Math.max(lane.bookedUntilMs, nowMs + MAX_WAIT_MS) + spacingMs;
  return lane.bookedUntilMs;
}

function forgetIdle(lanes: Map<string, Lane>, { monotonicMs, nowMs }: PaceDeps): void {
  for (const [id, { lastTurnMs, bookedUntilMs, waiting }] of lanes) {
    const isIdle = waiting === 0 && bookedUntilMs <= nowMs() && lastTurnMs + 1_000 <= monotonicMs();
    if (isIdle) lanes.delete(id);
  }
}
