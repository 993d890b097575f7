import { setTimeout as wait } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { required } from '@posthorn/domain/required.ts';
import { formatDelay } from '@posthorn/domain/delivery/schedule.ts';
import { createGroupPositions } from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { encodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import { DUE_AT_HEADER } from '@posthorn/domain/records/record-headers.ts';
import type { DeliveryRef } from '@posthorn/domain/delivery/delivery.ts';
import type { OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { type Owner, newDeliveries } from '../../load/failed-deliveries.ts';
import type { RetryTracker } from './lateness.ts';
import {
  memoryFigures,
  type MemoryFigures,
  type MemorySample,
  watchMemory,
} from '../../measure/watch-memory.ts';
import { rounded } from '../../measure/figures.ts';
import { type Spending, watchSpending } from '../../measure/spending.ts';
import type { Bench } from '../../scenario.ts';
import type { OpenStores } from '../../stack/open-stores.ts';

export interface ParkedRun {
  name: string;
  parkSeconds: number;
  /** Records beyond the committed offsets of the retry service. */
  stillParked: number;
  /** Records that were published to `retry-due` meanwhile. */
  released: number;
  /** CPU of the idle retry service, in percent of a core; null where it cannot be read. */
  cpuPercent: { before: number | null; after: number | null };
  memory: MemoryFigures;
  samples: MemorySample[];
  spending: Spending;
}

interface ParkedSpec {
  owner: Owner;
  parked: number;
  /** Seconds to watch the service with nothing parked, and then again with everything parked. */
  rest: number;
}

/** Reading the metrics once a second would be a considerable part of the CPU of an idle service. */
const SAMPLE_EVERY_MS = 5_000;

/**
 * Parks records on the longest delay topic, and measures their cost for the retry service while it
 * waits.
 */
export async function measureParked(
  bench: Bench,
  stores: OpenStores,
  tracker: RetryTracker,
  { owner, parked, rest }: ParkedSpec,
): Promise<ParkedRun> {
  const { log, signal } = bench;
  const delayTopic = longestDelayTopic(stores);
  const name = `${parked} parked for ${formatDelay(delayTopic.delayMs)}`;
  const unexpected = tracker.unexpected();
  log(`Watching the retry service for ${rest} s with nothing parked`);
  const before = await restFor(bench, rest);
  const memory = await watchMemory(bench, { service: 'retry', everyMs: SAMPLE_EVERY_MS });
  log(`Measuring: ${name}`);
  const startedAtMs = performance.now();
  await parkRetries(stores.records, delayTopic, { owner, count: parked, signal });
  const parkSeconds = rounded((performance.now() - startedAtMs) / 1_000);
  log(`Parked in ${parkSeconds} s; watching the retry service for ${rest} s`);
  const after = await restFor(bench, rest);
  const samples = await memory.stop();
  return {
    name,
    parkSeconds,
    samples,
    spending: after,
    memory: memoryFigures(samples),
    stillParked: await countParked(stores, delayTopic),
    released: tracker.unexpected() - unexpected,
    cpuPercent: { before: percentOf(before, rest), after: percentOf(after, rest) },
  };
}

function longestDelayTopic({ topics, schedule }: OpenStores): DelayTopic {
  const delayMs = Math.max(...schedule);
  return {
    topic: required(topics.parkedByDelayMs, delayMs, 'delay topic'),
    delayMs,
    attemptNumber: schedule.indexOf(delayMs) + 2,
  };
}

async function restFor({ usage, signal }: Bench, seconds: number): Promise<Spending> {
  const endSpending = watchSpending(usage);
  await wait(seconds * 1_000, undefined, { signal }).catch(() => undefined);
  return endSpending(0);
}

/** Computed from the CPU seconds: the rounding of the cores is about the use of an idle service. */
function percentOf({ parts }: Spending, seconds: number): number | null {
  const { retry } = parts;
  return retry === undefined ? null : rounded((100 * retry.cpuSeconds) / seconds, 2);
}

async function countParked(
  { kafka, groupPrefix }: OpenStores,
  { topic }: DelayTopic,
): Promise<number> {
  const groupId = `${groupPrefix}retry-release-long`;
  const positions = createGroupPositions(kafka, { groupId, topics: [topic] });
  try {
    return (await positions.read()).reduce((sum, { lag }) => sum + lag, 0);
  } finally {
    await positions.close();
  }
}

export interface DelayTopic {
  topic: string;
  delayMs: number;
  /** The number of the attempt that follows this delay. */
  attemptNumber: number;
}

const BATCH = 5_000;
const BATCHES_AT_ONCE = 2;

/** Publishes records to a delay topic, as the retry service does when an attempt has just failed. */
async function parkRetries(
  records: Pick<RecordLog, 'publish'>,
  delayTopic: DelayTopic,
  { owner, count, signal }: { owner: Owner; count: number; signal: AbortSignal },
): Promise<void> {
  let rest = count;
  const worker = async (): Promise<void> => {
    while (rest > 0 && !signal.aborted) {
      const size = Math.min(BATCH, rest);
      rest -= size;
      const dueAtMs = Date.now() + delayTopic.delayMs;
      await records.publish(
        newDeliveries(owner, size).map((ref) => parked(delayTopic, ref, dueAtMs)),
      );
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, worker));
}

function parked(
  { topic, attemptNumber }: DelayTopic,
  ref: DeliveryRef,
  dueAtMs: number,
): OutgoingRecord {
  return {
    topic,
    key: ref.webhookId,
    value: encodeRetryDue({ ...ref, attemptNumber, dueAtMs }),
    headers: { requestId: randomUUID(), [DUE_AT_HEADER]: String(dueAtMs) },
  };
}
