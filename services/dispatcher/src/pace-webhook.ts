import { DUE_AT_HEADER, encodeRetryDue, refOf, type DueAttempt } from '@posthorn/domain/records.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
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

interface Lane {
  nextFreeMs: number;
  waiting: number;
}

/** What waits here takes room from other webhooks; a resend sends no more than this at a time. */
const MAX_WAIT_MS = 2_000;
const MAX_WAITING = 200;
/** Above this many, lanes that nobody waits in are forgotten. */
const MANY_LANES = 10_000;

/**
 * Keeps to `rateLimitPerSecond` by spacing the attempts of one webhook evenly. A webhook's records
 * share a partition, and a partition has one dispatcher: the limit needs no other process. What
 * would wait too long is parked without using up an attempt.
 */
export function createPace(deps: PaceDeps): Pace {
  const lanes = new Map<string, Lane>();
  return async (record, due, { id, rateLimitPerSecond }) => {
    if (rateLimitPerSecond === null) return true;
    const nowMs = deps.monotonicMs();
    if (lanes.size > MANY_LANES) forgetIdle(lanes, nowMs);
    const lane = lanes.get(id) ?? { nextFreeMs: nowMs, waiting: 0 };
    lanes.set(id, lane);
    const turnMs = Math.max(nowMs, lane.nextFreeMs);
    const isLong = turnMs - nowMs > MAX_WAIT_MS || lane.waiting >= MAX_WAITING;
    if (isLong && due.trigger !== 'resend') {
      await putOff(deps, record, due);
      return false;
    }
    lane.nextFreeMs = turnMs + 1_000 / rateLimitPerSecond;
    lane.waiting += 1;
    if (turnMs > nowMs) await deps.wait(turnMs - nowMs);
    lane.waiting -= 1;
    return true;
  };
}

function forgetIdle(lanes: Map<string, Lane>, nowMs: number): void {
  for (const [id, { nextFreeMs, waiting }] of lanes) {
    if (waiting === 0 && nextFreeMs <= nowMs) lanes.delete(id);
  }
}

/** The shortest delay: its topic takes records in the order in which they fall due. */
async function putOff(deps: PaceDeps, { key, headers }: LogRecord, due: DueAttempt): Promise<void> {
  const [delayMs, topic] = [...deps.parkedByDelayMs].sort(([a], [b]) => a - b)[0] ?? [0, ''];
  const { attemptNumber, trigger } = due;
  const dueAtMs = deps.nowMs() + delayMs;
  const value = encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs });
  const parked = { topic, key, value, headers: { ...headers, [DUE_AT_HEADER]: String(dueAtMs) } };
  await keepTrying(() => deps.log.publish([parked]));
  deps.deferrals.inc();
}
