import {
  DUE_AT_HEADER,
  encodeRetryDue,
  refOf,
  TURN_AT_HEADER,
  type DueAttempt,
} from '@posthorn/domain/records.ts';
import { createBatcher } from '@posthorn/platform/batcher.ts';
import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';

/** Header of a record that was put off: how much later it is due because of another clock, in milliseconds. */
export const AHEAD_HEADER = 'clock-ahead';

export interface PutOffUntil {
  turnAtMs: number;
  /**
   * Which delay topic is taken when none ends at the turn: the longest that ends before it, so that
   * the record comes back some times and its turn is kept; or the shortest that covers it, so that
   * it comes back once, late. `few` keeps the turn if that takes a few rounds only.
   */
  fit: 'before' | 'cover' | 'few';
  headers?: Readonly<Record<string, string>>;
}

/** Parks a due attempt without using it up; it comes back by itself. Resolves when Kafka has it. */
export type PutOff = (record: LogRecord, due: DueAttempt, until: PutOffUntil) => Promise<void>;

export interface PutOffDeps {
  log: Pick<RecordLog, 'publish'>;
  /** Delay in milliseconds → topic. */
  parkedByDelayMs: ReadonlyMap<number, string>;
  nowMs: () => number;
}

const BATCH = { maxItems: 500, lingerMs: 5, maxInFlight: 2 };
const FEW_ROUNDS = 12;

export function createPutOff({ log, parkedByDelayMs, nowMs }: PutOffDeps): PutOff {
  const delaysMs = [...parkedByDelayMs.keys()].sort((a, b) => a - b);
  const publish = createBatcher<OutgoingRecord, undefined>({
    ...BATCH,
    run: async (records) => {
      await keepTrying(() => log.publish(records));
      return records.map(() => undefined);
    },
  });
  return async (record, due, { turnAtMs, fit, headers }) => {
    const atMs = nowMs();
    const delayMs = chooseDelay(delaysMs, turnAtMs - atMs, fit);
    const { attemptNumber, trigger } = due;
    const aheadMs = aheadByMs(record, atMs);
    const dueAtMs = atMs + delayMs + aheadMs;
    const times = {
      [DUE_AT_HEADER]: String(dueAtMs),
      [TURN_AT_HEADER]: String(Math.ceil(turnAtMs)),
      [AHEAD_HEADER]: String(aheadMs),
    };
    await publish.add({
      topic: parkedByDelayMs.get(delayMs) ?? '',
      key: record.key,
      value: encodeRetryDue({ ...refOf(due), attemptNumber, trigger, dueAtMs }),
      headers: { ...record.headers, ...headers, ...times },
    });
  };
}

/**
 * A record that is here before it is due was released by a clock that is ahead of ours. By our clock
 * alone it would be put off to a time that is over there, and come back at once, again and again. An
 * hour is found in ten rounds from 5 s on; what a record says it was given is right once it waited.
 */
function aheadByMs({ headers }: LogRecord, atMs: number): number {
  const earlyMs = Math.max(0, (timeIn(headers, DUE_AT_HEADER) ?? atMs) - atMs);
  const givenMs = timeIn(headers, AHEAD_HEADER) ?? 0;
  return earlyMs > givenMs ? earlyMs * 2 : earlyMs;
}

function chooseDelay(ascendingMs: readonly number[], waitMs: number, fit: PutOffUntil['fit']) {
  const shortestMs = ascendingMs[0] ?? 0;
  const beforeMs = ascendingMs.findLast((delayMs) => delayMs <= waitMs) ?? shortestMs;
  if (fit === 'before' || (fit === 'few' && waitMs <= beforeMs * FEW_ROUNDS)) return beforeMs;
  return ascendingMs.find((delayMs) => delayMs >= waitMs) ?? ascendingMs.at(-1) ?? shortestMs;
}

/** Nothing is booked further ahead than any installation keeps deliveries: such a turn is not ours. */
const FARTHEST_TURN_MS = 366 * 86_400_000;

/** Null when the record was never put off. */
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
