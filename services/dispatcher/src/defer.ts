import {
  CLOCK_AHEAD_HEADER,
  DEFERRED_SINCE_HEADER,
  DUE_AT_HEADER,
  readMs,
  TURN_AT_HEADER,
} from '@posthorn/domain/records/record-headers.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { deferredRecord, slowLaneRecord } from '@posthorn/domain/records/retry-due.ts';
import { required, requiredAt } from '@posthorn/domain/required.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createBatchedPublisher } from '@posthorn/platform/kafka/batched-publisher.ts';
import type { LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { DeferralReason } from './isolation/gate.ts';

interface Deferral {
  because: DeferralReason;
  /** When the attempt is to come again, in milliseconds since 1970. */
  reservedAtMs: number;
}

/**
 * Writes a due attempt to a delay topic for deferrals. This uses up no attempt of its schedule, and the
 * record comes back by itself. Resolves when Kafka has stored it.
 */
export type Defer = (record: LogRecord, due: DueAttempt, deferral: Deferral) => Promise<void>;

interface DeferDeps {
  records: Pick<RecordLog, 'publish'>;
  keepTrying: KeepTrying;
  /** Delay in milliseconds → topic. */
  deferredByDelayMs: ReadonlyMap<number, string>;
  count: (because: DeferralReason) => void;
  nowMs: () => number;
}

export function createDefer({
  records,
  keepTrying,
  deferredByDelayMs,
  count,
  nowMs,
}: DeferDeps): Defer {
  const delaysMs = [...deferredByDelayMs.keys()].sort((a, b) => a - b);
  const publish = createBatchedPublisher({
    records,
    keepTrying,
    purpose: 'publish deferred attempts',
  });
  return async (record, due, { because, reservedAtMs }) => {
    const atMs = nowMs();
    const delayMs = chooseDelayMs(delaysMs, reservedAtMs - atMs, because);
    const topic = required(deferredByDelayMs, delayMs, 'delay topic');
    const aheadMs = aheadByMs(record, atMs);
    const dueAtMs = atMs + delayMs + aheadMs;
    const sinceMs =
      readMs(record.headers, DEFERRED_SINCE_HEADER) ?? (because === 'circuit' ? atMs : null);
    const times = { dueAtMs, reservedAtMs, sinceMs, aheadMs };
    await publish({ topic, ...deferredRecord(due, times, record.headers) });
    count(because);
  };
}

/**
 * Returns the longest delay that ends before the reservation: the record comes back a few times, and is on
 * time for its reservation. For an open circuit, returns the shortest delay that covers the wait: the backlog
 * of a dead endpoint is copied once instead, and may be late.
 */
export function chooseDelayMs(
  ascendingMs: readonly number[],
  waitMs: number,
  because: DeferralReason,
): number {
  const shortestMs = requiredAt(ascendingMs, 0, 'deferral delay');
  if (because !== 'circuit') {
    return ascendingMs.findLast((delayMs) => delayMs <= waitMs) ?? shortestMs;
  }
  return ascendingMs.find((delayMs) => delayMs >= waitMs) ?? ascendingMs.at(-1) ?? shortestMs;
}

/**
 * Returns by how much later the record must be due because of another clock. A record that is here
 * before it is due was released by a process whose clock is ahead of ours. By our clock alone it would
 * be deferred to a time that has already passed there, and come back at once, again and again. The
 * extra time doubles: from 5 s on, a clock that is an hour ahead is covered after ten rounds. Once the
 * record did wait, the extra time that its header carries is right.
 */
function aheadByMs({ headers }: LogRecord, atMs: number): number {
  const earlyMs = Math.max(0, (readMs(headers, DUE_AT_HEADER) ?? atMs) - atMs);
  const givenMs = readMs(headers, CLOCK_AHEAD_HEADER) ?? 0;
  return earlyMs > givenMs ? earlyMs * 2 : earlyMs;
}

/**
 * No reservation is further ahead than this, which is longer than deliveries are kept: such a header is
 * not ours.
 */
const FARTHEST_RESERVATION_MS = 366 * 86_400_000;

/** Returns the reservation of a deferred record, in milliseconds since 1970; null when it was never deferred. */
export function reservedAtOf({ headers }: LogRecord, nowMs: number): number | null {
  const reservedAtMs = readMs(headers, TURN_AT_HEADER);
  return reservedAtMs === null || reservedAtMs - nowMs > FARTHEST_RESERVATION_MS
    ? null
    : reservedAtMs;
}

/**
 * Moves a due attempt of a slow endpoint to the slow lane, so that it does not block the others of its
 * partition. Resolves when Kafka has stored it.
 */
export type MoveToSlowLane = (record: LogRecord, due: DueAttempt) => Promise<void>;

interface SlowLaneDeps {
  records: Pick<RecordLog, 'publish'>;
  slowLaneTopic: string;
  keepTrying: KeepTrying;
  count: () => void;
}

export function createMoveToSlowLane({
  records,
  slowLaneTopic,
  keepTrying,
  count,
}: SlowLaneDeps): MoveToSlowLane {
  const publish = createBatchedPublisher({
    records,
    keepTrying,
    purpose: 'publish attempts to the slow lane',
  });
  return async ({ headers }, due) => {
    await publish({ topic: slowLaneTopic, ...slowLaneRecord(due, headers) });
    count();
  };
}
