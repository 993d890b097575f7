import type { DeliveryRef } from '@posthorn/domain/message/delivery.ts';
import { formatDelay } from '@posthorn/domain/schedule/retry-schedule.ts';
import { failAtRate, type FailureDeps } from '../../load/fail-at-rate.ts';
import { newDeliveries, type Owner, storeFailed } from '../../load/failed-deliveries.ts';
import { createRetryTracker, type RetryTracker } from '../../load/retry-tracker.ts';
import { latenessFigures, type LatenessFigures } from '../../measure/lateness-figures.ts';
import { type Spending, watchSpending } from '../../measure/spending.ts';
import { untilArrived } from '../../measure/until-arrived.ts';
import type { Bench } from '../../scenario.ts';
import { followTopic, type Follower } from '../../stack/follow-topic.ts';
import type { OpenStores } from '../../stack/open-stores.ts';

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
