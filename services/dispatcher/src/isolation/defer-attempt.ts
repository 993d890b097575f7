import {
  DUE_AT_HEADER,
  encodeRetryDue,
  refOf,
  TURN_AT_HEADER,
  type DueAttempt,
} from '@posthorn/domain/records/records.ts';
import { createBatcher } from '@posthorn/platform/async/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { Reason } from './gate/gate.ts';

/** Header of a deferred record: how much later it is due because of another clock, in milliseconds. */
export const AHEAD_HEADER = 'clock-ahead';
/** Header of a record that an open circuit deferred: since when, in milliseconds since 1970. */
export const DEFERRED_SINCE_HEADER = 'deferred-since';

export interface Deferral {
  because: Reason;
  /** When the attempt is to come again, in milliseconds since 1970. */
  turnAtMs: number;
}

/**
 * Parks a due attempt in a delay topic of the deferrals, without using it up; it comes back by itself.
 * Resolves when Kafka has it.
 */
export type Defer = (record: LogRecord, due: DueAttempt, deferral: Deferral) => Promise<void>;

export interface DeferDeps {
  records: Pick<RecordLog, 'publish'>;
  /** Delay in milliseconds → topic. */
  deferredByDelayMs: ReadonlyMap<number, string>;
  count: (because: Reason) => void;
  nowMs: () => number;
}

const BATCH = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };

export function createDefer({ records, deferredByDelayMs, count, nowMs }: DeferDeps): Defer {
  const delaysMs = [...deferredByDelayMs.keys()].sort((a, b) => a - b);
  const publish = createBatcher<OutgoingRecord, undefined>({
    ...BATCH,
    run: async (batch) => {
      await keepTrying(() => records.publish(batch));
      return batch.map(() => undefined);
    },
  });
  return async (record, due, { because, turnAtMs }) => {
    const atMs = nowMs();
    const delayMs = chooseDelayMs(delaysMs, turnAtMs - atMs, because);
    const topic = deferredByDelayMs.get(delayMs);
    if (topic === undefined) throw new Error(`there is no delay topic for ${delayMs} ms`);
    const aheadMs = aheadByMs(record, atMs);
    const dueAtMs = atMs + delayMs + aheadMs;
    const { attemptNumber, trigger } = due;
    await publish.add({
      topic,
      key: record.key,
      value: encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs }),
      headers: {
        ...record.headers,
        ...(because === 'circuit' && {
          [DEFERRED_SINCE_HEADER]: String(timeIn(record.headers, DEFERRED_SINCE_HEADER) ?? atMs),
        }),
        [DUE_AT_HEADER]: String(dueAtMs),
        [TURN_AT_HEADER]: String(Math.ceil(turnAtMs)),
        [AHEAD_HEADER]: String(aheadMs),
      },
    });
    count(because);
  };
}

/**
 * The longest delay that ends before the turn, so that the record comes back a few times and its turn
 * is kept. An open circuit takes the shortest one that covers it: a dead endpoint with a large backlog
 * is copied once instead, and late.
 */
export function chooseDelayMs(
  ascendingMs: readonly number[],
  waitMs: number,
  because: Reason,
): number {
  const [shortestMs = 0] = ascendingMs;
  if (because !== 'circuit') {
    return ascendingMs.findLast((delayMs) => delayMs <= waitMs) ?? shortestMs;
  }
  return ascendingMs.find((delayMs) => delayMs >= waitMs) ?? ascendingMs.at(-1) ?? shortestMs;
}

/**
 * A record that is here before it is due was released by a clock that is ahead of ours. By our clock
 * alone it would be deferred to a time that is over there, and come back at once, again and again. An
 * hour is found in ten rounds from 5 s on; what a record says it was given is right once it waited.
 */
function aheadByMs({ headers }: LogRecord, atMs: number): number {
  const earlyMs = Math.max(0, (timeIn(headers, DUE_AT_HEADER) ?? atMs) - atMs);
  const givenMs = timeIn(headers, AHEAD_HEADER) ?? 0;
  return earlyMs > givenMs ? earlyMs * 2 : earlyMs;
}

/** Nothing is booked further ahead than any installation keeps deliveries: such a turn is not ours. */
const FARTHEST_TURN_MS = 366 * 86_400_000;

/** Null when the record was never deferred. */
export function turnAtOf({ headers }: LogRecord, nowMs: number): number | null {
  const turnAtMs = timeIn(headers, TURN_AT_HEADER);
  return turnAtMs === null || turnAtMs - nowMs > FARTHEST_TURN_MS ? null : turnAtMs;
}

/** A time in milliseconds since 1970 from a header; null when there is none that makes sense. */
export function timeIn(headers: LogRecord['headers'], name: string): number | null {
  const text = headers[name];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** What later records of the delivery still carry once this attempt is made. */
export function lastingHeaders({
  requestId,
  traceparent,
}: LogRecord['headers']): LogRecord['headers'] {
  return { ...(requestId && { requestId }), ...(traceparent && { traceparent }) };
}
