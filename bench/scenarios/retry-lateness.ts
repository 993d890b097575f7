import type { DeliveryRef } from '@posthorn/domain/records/records.ts';
import { formatDelay } from '@posthorn/domain/schedule/retry-schedule.ts';
import { failAtRate, type FailureDeps } from '../load/fail-at-rate.ts';
import { newDeliveries, type Owner, storeFailed } from '../load/failed-deliveries.ts';
import { createRetryBook, type RetryBook } from '../load/retry-book.ts';
import { latenessFigures, type LatenessFigures } from '../measure/lateness-figures.ts';
import { type Spending, watchSpending } from '../measure/spending.ts';
import { untilArrived } from '../measure/until-arrived.ts';
import type { Bench } from '../scenario.ts';
import { followTopic, type Follower } from '../stack/follow-topic.ts';
import type { OpenStores } from '../stack/open-stores.ts';

export interface LatenessRun {
  name: string;
  figures: LatenessFigures;
  spending: Spending;
}

export interface LatenessSpec {
  owner: Owner;
  rate: number;
  seconds: number;
  warmup: number;
}

export interface RetryDue extends Follower {
  book: RetryBook;
}

const PATIENCE = { quietMs: 25_000, totalMs: 180_000 };

/** Reads what is released, in place of the dispatcher. */
export async function followReleases({ kafka, topics }: OpenStores): Promise<RetryDue> {
  const book = createRetryBook();
  const { close } = await followTopic(kafka, topics.retryDue, ({ message, receivedAtMs }) => {
    // Not the decoder of the records, which derives two ids by a digest each.
    const { messageId } = JSON.parse(String(message.value)) as { messageId: string };
    book.note(messageId, { releasedAtMs: Number(message.timestamp), receivedAtMs });
  });
  return { book, close };
}

/** Failures at a fixed rate at the door of the retry service, first unmeasured, and their retries one delay later. */
export async function measureLateness(
  bench: Bench,
  { log, topics, deliveries, schedule }: OpenStores,
  book: RetryBook,
  { owner, rate, seconds, warmup }: LatenessSpec,
): Promise<LatenessRun> {
  const [delayMs = 0] = schedule;
  const all = newDeliveries(owner, Math.round(rate * (warmup + seconds)));
  bench.log(`Storing ${all.length} deliveries that have failed once`);
  await storeFailed(deliveries, all, delayMs);
  const unmeasured = all.splice(0, Math.round(rate * warmup));
  const { signal } = bench;
  const deps = { log, failedTopic: topics.deliveryFailed, book, delayMs, signal };
  bench.log(`Warming up for ${warmup} s`);
  await failAndWait(deps, unmeasured, rate);
  const name = `${rate} retries due per second, ${formatDelay(delayMs)} after their failure`;
  bench.log(`Measuring: ${name}`);
  book.forgetAll();
  const endSpending = watchSpending(bench.usage);
  const { startedAtMs } = await failAndWait(deps, all, rate);
  const spending = endSpending(all.length);
  return { name, figures: latenessFigures(book.all(), startedAtMs), spending };
}

async function failAndWait(
  deps: FailureDeps,
  deliveries: readonly DeliveryRef[],
  rate: number,
): Promise<{ startedAtMs: number }> {
  const started = await failAtRate(deps, deliveries, rate);
  await untilArrived(deps.book.missing, { ...PATIENCE, signal: deps.signal });
  return started;
}
