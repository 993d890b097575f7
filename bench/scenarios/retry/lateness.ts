import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import { formatDelay } from '@posthorn/domain/delivery/schedule.ts';
import { encodeDeliveryFailed } from '@posthorn/domain/records/records.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { newDeliveries, type Owner, storeFailed } from '../../load/failed-deliveries.ts';
import { type Spending, watchSpending } from '../../measure/spending.ts';
import { untilArrived } from '../../measure/phase.ts';
import type { Bench } from '../../scenario.ts';
import { followTopic, type Follower, type OpenStores } from '../../stack/open-stores.ts';
import { type Percentiles, percentilesOf, secondsOf } from '../../measure/figures.ts';
import { createOpenLoopSchedule } from '../../load/loops.ts';

export interface LatenessRun {
  name: string;
  figures: LatenessFigures;
  spending: Spending;
}

interface LatenessSpec {
  owner: Owner;
  rate: number;
  seconds: number;
  warmup: number;
}

interface RetryDue extends Follower {
  tracker: RetryTracker;
}

const PATIENCE = { quietMs: 25_000, totalMs: 180_000 };

/** Reads the released records, in place of the dispatcher. */
export async function followReleases({ kafka, topics }: OpenStores): Promise<RetryDue> {
  const tracker = createRetryTracker();
  const { close } = await followTopic(kafka, topics.retryDue, ({ message, receivedAtMs }) => {
    // Not with the decoder of records, which computes two ids with a digest each.
    const { messageId } = JSON.parse(String(message.value)) as { messageId: string };
    tracker.note(messageId, { releasedAtMs: Number(message.timestamp), receivedAtMs });
  });
  return { tracker, close };
}

/**
 * Publishes failures at a fixed rate for the retry service, first unmeasured, and measures when their
 * retries are released.
 */
export async function measureLateness(
  bench: Bench,
  { records, topics, deliveries, schedule }: OpenStores,
  tracker: RetryTracker,
  { owner, rate, seconds, warmup }: LatenessSpec,
): Promise<LatenessRun> {
  const [delayMs = 0] = schedule;
  const all = newDeliveries(owner, Math.round(rate * (warmup + seconds)));
  bench.log(`Storing ${all.length} deliveries that have failed once`);
  await storeFailed(deliveries, all, delayMs);
  const unmeasured = all.splice(0, Math.round(rate * warmup));
  const { signal } = bench;
  const deps = { records, failedTopic: topics.deliveryFailed, tracker, delayMs, signal };
  bench.log(`Warming up for ${warmup} s`);
  await failAndWait(deps, unmeasured, rate);
  const name = `${rate} retries due per second, ${formatDelay(delayMs)} after their failure`;
  bench.log(`Measuring: ${name}`);
  tracker.forgetAll();
  const endSpending = watchSpending(bench.usage);
  const { startedAtMs } = await failAndWait(deps, all, rate);
  const spending = endSpending(all.length);
  return { name, figures: latenessFigures(tracker.all(), startedAtMs), spending };
}

async function failAndWait(
  deps: FailureDeps,
  deliveries: readonly DeliveryRef[],
  rate: number,
): Promise<{ startedAtMs: number }> {
  const started = await failAtRate(deps, deliveries, rate);
  await untilArrived(deps.tracker.missing, { ...PATIENCE, signal: deps.signal });
  return started;
}

/** When the retries of one load were released. */
interface LatenessFigures {
  due: number;
  missing: number;
  /** Releases beyond the first of a retry. */
  duplicates: number;
  /** Released before they were due, by the timestamps of their records. */
  early: number;
  /** From the due time until the timestamp of the released record. */
  releasedAfterMs: Percentiles;
  /** From the due time until the generator had the record, as a dispatcher would have it. */
  receivedAfterMs: Percentiles;
  /** From the timestamp until the generator had the record: Kafka and the generator's own reading. */
  readingMs: Percentiles;
  /** From the end of the failed attempt until Kafka had stored the failure. */
  storedAfterMs: Percentiles;
  timeline: LatenessSecond[];
}

/** The events of one second, and the lateness of the retries that were due in it. */
interface LatenessSecond {
  second: number;
  released: number;
  received: number;
  releasedAfterMs: Pick<Percentiles, 'p50' | 'p99'>;
  receivedAfterMs: Pick<Percentiles, 'p50' | 'p99'>;
}

export function latenessFigures(retries: readonly Retry[], startedAtMs: number): LatenessFigures {
  const released = retries.flatMap(({ dueAtMs, release }) =>
    release ? [{ dueAtMs, ...release }] : [],
  );
  const stored = retries.flatMap(({ storedAtMs, endedAtMs }) =>
    storedAtMs === null ? [] : [storedAtMs - endedAtMs],
  );
  const releasedAfterMs = released.map(({ releasedAtMs, dueAtMs }) => releasedAtMs - dueAtMs);
  const receivedAfterMs = released.map(({ receivedAtMs, dueAtMs }) => receivedAtMs - dueAtMs);
  return {
    due: retries.length,
    missing: retries.length - released.length,
    duplicates: retries.reduce((sum, { count }) => sum + Math.max(0, count - 1), 0),
    early: releasedAfterMs.filter((lateMs) => lateMs < 0).length,
    releasedAfterMs: percentilesOf(releasedAfterMs),
    receivedAfterMs: percentilesOf(receivedAfterMs),
    readingMs: percentilesOf(released.map((each) => each.receivedAtMs - each.releasedAtMs)),
    storedAfterMs: percentilesOf(stored),
    timeline: timelineOf(released, startedAtMs),
  };
}

interface Released {
  dueAtMs: number;
  releasedAtMs: number;
  receivedAtMs: number;
}

function timelineOf(released: readonly Released[], startedAtMs: number): LatenessSecond[] {
  const timelines = released.map(({ dueAtMs, releasedAtMs, receivedAtMs }) => ({
    intendedAtMs: dueAtMs,
    acceptedAtMs: releasedAtMs,
    arrivedAtMs: receivedAtMs,
  }));
  return secondsOf(timelines, startedAtMs).map((each) => ({
    second: each.second,
    released: each.accepted,
    received: each.delivered,
    releasedAfterMs: each.acceptMs,
    receivedAfterMs: each.endToEndMs,
  }));
}

interface FailureDeps {
  records: Pick<RecordLog, 'publish'>;
  failedTopic: string;
  tracker: RetryTracker;
  delayMs: number;
  /** Ends the load early. */
  signal: AbortSignal;
}

const TICK_MS = 5;
/** Failures that become due meanwhile go into the next request, as in the dispatcher. */
const SENDS_AT_ONCE = 2;

/**
 * Publishes failed first attempts at a fixed rate, whatever Kafka does. Their end times are evenly
 * spread. Resolves with the start time when all of them are acknowledged or refused.
 */
async function failAtRate(
  deps: FailureDeps,
  deliveries: readonly DeliveryRef[],
  ratePerSecond: number,
): Promise<{ startedAtMs: number }> {
  const schedule = createOpenLoopSchedule(ratePerSecond, deliveries.length / ratePerSecond);
  const startedAtMs = Date.now();
  const clockAtStartMs = performance.now();
  const endedAtMs = (n: number): number => Math.floor(startedAtMs + schedule.intendedMs(n));
  const sending = new Set<Promise<void>>();
  for (let sent = 0; sent < schedule.total && !deps.signal.aborted;) {
    const due = schedule.dueCount(performance.now() - clockAtStartMs);
    if (due > sent && sending.size < SENDS_AT_ONCE) {
      const failures = deliveries
        .slice(sent, due)
        .map((ref, index) => failureOf(deps, ref, endedAtMs(sent + index)));
      const send = publish(deps.records, failures).finally(() => sending.delete(send));
      sending.add(send);
      sent = due;
    }
    await wait(TICK_MS);
  }
  await Promise.all(sending);
  return { startedAtMs };
}

interface Failure {
  record: OutgoingRecord;
  retry: Retry;
}

function failureOf(
  { failedTopic, tracker, delayMs }: FailureDeps,
  ref: DeliveryRef,
  endedAtMs: number,
): Failure {
  const outcome = { attemptNumber: 1, endedAtMs, outcome: 'http_5xx', statusCode: 500 };
  return {
    retry: tracker.expect(ref.messageId, { endedAtMs, dueAtMs: endedAtMs + delayMs }),
    record: {
      topic: failedTopic,
      key: ref.webhookId,
      value: encodeDeliveryFailed({ ...ref, ...outcome }),
      headers: { requestId: randomUUID() },
    },
  };
}

/**
 * A failure that Kafka refused has no storing time, and is missing at the end unless it was stored
 * after all.
 */
async function publish(
  records: FailureDeps['records'],
  failures: readonly Failure[],
): Promise<void> {
  try {
    await records.publish(failures.map(({ record }) => record));
  } catch {
    return;
  }
  const storedAtMs = Date.now();
  for (const { retry } of failures) retry.storedAtMs = storedAtMs;
}

/** One failed attempt and the release of its retry; all times in milliseconds since 1970. */
export interface Retry {
  /** When the failed attempt ended. */
  endedAtMs: number;
  /** By the schedule, not by the record. */
  dueAtMs: number;
  /** When Kafka acknowledged the failure. */
  storedAtMs: number | null;
  /** Its first release. */
  release: Release | null;
  /** How often it was released. */
  count: number;
}

interface Release {
  /** The timestamp of the record, which its producer sets. */
  releasedAtMs: number;
  /** When the generator had it. */
  receivedAtMs: number;
}

/** Tracks which retries are expected, and when each was released. */
export interface RetryTracker {
  expect: (messageId: string, times: Pick<Retry, 'endedAtMs' | 'dueAtMs'>) => Retry;
  note: (messageId: string, release: Release) => void;
  missing: () => number;
  /** Returns the number of releases that were not expected. */
  unexpected: () => number;
  all: () => Retry[];
  /** Forgets all retries: finished ones would only lengthen garbage collection. */
  forgetAll: () => void;
}

export function createRetryTracker(): RetryTracker {
  const known = new Map<string, Retry>();
  let unexpected = 0;
  let released = 0;
  return {
    expect(messageId, times) {
      const retry = { ...times, storedAtMs: null, release: null, count: 0 };
      known.set(messageId, retry);
      return retry;
    },
    note(messageId, release) {
      const retry = known.get(messageId);
      if (!retry) {
        unexpected += 1;
        return;
      }
      retry.count += 1;
      if (retry.release) return;
      retry.release = release;
      released += 1;
    },
    missing: () => known.size - released,
    unexpected: () => unexpected,
    all: () => [...known.values()],
    forgetAll() {
      known.clear();
      released = 0;
    },
  };
}
