import { DUE_AT_HEADER, encodeRetryDue, refOf, type DueAttempt } from '@posthorn/domain/records.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { Counter } from 'prom-client';

export interface PaceDeps {
  log: Pick<RecordLog, 'publish'>;
  /** Delay in milliseconds → topic. */
  parkedByDelayMs: ReadonlyMap<number, string>;
  deferrals: Counter;
  wait: (ms: number) => Promise<unknown>;
  /** Monotonic, for the spacing. */
  monotonicMs: () => number;
  nowMs: () => number;
}

/** Resolves true when it is this attempt's turn, false when it was put off and comes back by itself. */
export type Pace = (record: LogRecord, due: DueAttempt, webhook: Webhook) => Promise<boolean>;

/** Header of a record that was put off: when its turn is, in milliseconds since 1970. */
export const TURN_AT_HEADER = 'turn-at';

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
const PUT_OFF = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };

/**
 * Keeps to `rateLimitPerSecond` by spacing the attempts of one webhook evenly. A webhook's records
 * share a partition, and a partition has one dispatcher: the limit needs no other process. What
 * cannot wait here books a turn behind the others and is parked, without using up an attempt.
 */
export function createPace(deps: PaceDeps): Pace {
  const lanes = new Map<string, Lane>();
  const park = createPark(deps);
  const maxWaitMs = Math.min(MAX_WAIT_MS, ...deps.parkedByDelayMs.keys());
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
    const bookedMs = turnAtOf(record);
    const isNear = (bookedMs ?? lane.bookedUntilMs) <= nowMs + maxWaitMs;
    const hasRoom = lane.waiting < MAX_WAITING.inLane && waiting < MAX_WAITING.inAll;
    if (isNear && hasRoom && turnMs - monotonicMs <= maxWaitMs) {
      await takeTurn(lane, turnMs);
      return true;
    }
    const turnAtMs =
      bookedMs !== null && bookedMs > nowMs ? bookedMs : book(lane, nowMs, spacingMs);
    await park(record, due, turnAtMs);
    return false;
  };
}

/** Behind all turns that are booked, and behind those that wait in memory. */
function book(lane: Lane, nowMs: number, spacingMs: number): number {
  lane.bookedUntilMs = Math.max(lane.bookedUntilMs, nowMs + MAX_WAIT_MS) + spacingMs;
  return lane.bookedUntilMs;
}

function turnAtOf({ headers }: LogRecord): number | null {
  const text = headers[TURN_AT_HEADER];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function forgetIdle(lanes: Map<string, Lane>, { monotonicMs, nowMs }: PaceDeps): void {
  for (const [id, { lastTurnMs, bookedUntilMs, waiting }] of lanes) {
    const isIdle = waiting === 0 && bookedUntilMs <= nowMs() && lastTurnMs + 1_000 <= monotonicMs();
    if (isIdle) lanes.delete(id);
  }
}

/** Parks with the longest delay that ends before the turn: a turn far ahead comes back few times. */
function createPark({ log, parkedByDelayMs, deferrals, nowMs }: PaceDeps) {
  const longestFirst = [...parkedByDelayMs].sort(([a], [b]) => b - a);
  const publish = createBatcher<OutgoingRecord, undefined>({
    ...PUT_OFF,
    run: async (records) => {
      await keepTrying(() => log.publish(records));
      return records.map(() => undefined);
    },
  });
  return async (record: LogRecord, due: DueAttempt, turnAtMs: number): Promise<void> => {
    const atMs = nowMs();
    const [delayMs, topic] = longestFirst.find(([ms]) => atMs + ms <= turnAtMs) ??
      longestFirst.at(-1) ?? [0, ''];
    const { attemptNumber, trigger } = due;
    const dueAtMs = atMs + delayMs;
    const value = encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs });
    const times = {
      [DUE_AT_HEADER]: String(dueAtMs),
      [TURN_AT_HEADER]: String(Math.ceil(turnAtMs)),
    };
    await publish.add({ topic, key: record.key, value, headers: { ...record.headers, ...times } });
    deferrals.inc();
  };
}
