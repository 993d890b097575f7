import { setTimeout as wait } from 'node:timers/promises';
import { formatDelay } from '@posthorn/domain/schedule/retry-schedule.ts';
import { createPositionSource } from '@posthorn/platform/kafka/positions/ask-positions.ts';
import type { Owner } from '../load/failed-deliveries.ts';
import { parkRetries, type Tier } from '../load/park-retries.ts';
import type { RetryBook } from '../load/retry-book.ts';
import { memoryFigures, type MemoryFigures } from '../measure/memory-figures.ts';
import { rounded } from '../measure/percentiles.ts';
import { type Spending, watchSpending } from '../measure/spending.ts';
import type { Bench } from '../scenario.ts';
import type { OpenStores } from '../stack/open-stores.ts';
import { type MemorySample, watchMemory } from '../stack/watch-memory.ts';

export interface ParkedRun {
  name: string;
  parkSeconds: number;
  /** Records that the retry service has not passed, by its committed offsets. */
  stillParked: number;
  /** Records that came out on `retry-due` meanwhile. */
  released: number;
  /** Of the retry service at rest, in percent of a core; null where it cannot be read. */
  cpuPercent: { before: number | null; after: number | null };
  memory: MemoryFigures;
  samples: MemorySample[];
  spending: Spending;
}

export interface ParkedSpec {
  owner: Owner;
  parked: number;
  /** Seconds to watch, with nothing parked and then again with all of it. */
  rest: number;
}

/** Reading the metrics once a second would be a good part of what a service takes at rest. */
const SAMPLE_EVERY_MS = 5_000;

/** Records parked on the longest tier, by the bench, and what they cost the retry service while it waits. */
export async function measureParked(
  bench: Bench,
  stores: OpenStores,
  book: RetryBook,
  { owner, parked, rest }: ParkedSpec,
): Promise<ParkedRun> {
  const { log, signal } = bench;
  const tier = longestTier(stores);
  const name = `${parked} parked for ${formatDelay(tier.delayMs)}`;
  const strangers = book.strangers();
  log(`Watching the retry service for ${rest} s with nothing parked`);
  const before = await restFor(bench, rest);
  const memory = await watchMemory(bench, { service: 'retry', everyMs: SAMPLE_EVERY_MS });
  log(`Measuring: ${name}`);
  const startedAtMs = performance.now();
  await parkRetries(stores.log, tier, { owner, count: parked, signal });
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
    stillParked: await countParked(stores, tier),
    released: book.strangers() - strangers,
    cpuPercent: { before: percentOf(before, rest), after: percentOf(after, rest) },
  };
}

function longestTier({ topics, schedule }: OpenStores): Tier {
  const delayMs = Math.max(...schedule);
  return {
    topic: topics.parkedByDelayMs.get(delayMs) ?? '',
    delayMs,
    attemptNumber: schedule.indexOf(delayMs) + 2,
  };
}

async function restFor({ usage, signal }: Bench, seconds: number): Promise<Spending> {
  const endSpending = watchSpending(usage);
  await wait(seconds * 1_000, undefined, { signal }).catch(() => undefined);
  return endSpending(0);
}

/** From the CPU time: as cores it is rounded to what a service at rest takes in all. */
function percentOf({ parts }: Spending, seconds: number): number | null {
  const { retry } = parts;
  return retry === undefined ? null : rounded((100 * retry.cpuSeconds) / seconds, 2);
}

async function countParked({ kafka, groupPrefix }: OpenStores, { topic }: Tier): Promise<number> {
  const groupId = `${groupPrefix}retry-release-long`;
  const positions = createPositionSource(kafka, { groupId, topics: [topic] });
  try {
    return (await positions.ask()).reduce((sum, { lag }) => sum + lag, 0);
  } finally {
    await positions.close();
  }
}
