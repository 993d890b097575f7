import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import type { Loop } from '../../async/loop.ts';
import { monotonicClockMs, systemClockMs } from '../../service/clock-and-ids.ts';
import { createFollowEnds } from '../backlog/follow-ends.ts';
import { READY_WHEN_WRITTEN } from '../backlog/ready-records.ts';
import { createGroupPositions, type GroupPositions } from '../offsets/group-positions.ts';
import type { ConsumeOptions, Consumption } from '../record-log.ts';
import { watchForClockRollback } from './clock-rollback-watch.ts';
import type { ConsumeDeps } from './consume-deps.ts';
import { createGroupConsumer, type GroupConsumer } from './group-consumer.ts';
import { createStrayWatch } from './process-share.ts';
import { createStallWatch, type StallWatch } from './stall-watch.ts';

const STALL_MS = 110_000;

interface Supervised {
  /** The consumer that reads now. */
  consumer: GroupConsumer;
  /** Resolves when every consumer before it has left the group. */
  replaced: Promise<void>;
  stopping: AbortController;
}

/** Reads the topics as one member of the group until stopped; replaces its consumer when that one stalls. */
export async function consume(deps: ConsumeDeps, options: ConsumeOptions): Promise<Consumption> {
  const supervised: Supervised = {
    consumer: createGroupConsumer(deps, options),
    replaced: Promise.resolve(),
    stopping: new AbortController(),
  };
  deps.metrics.show(options.groupId, {
    isRunning: () => supervised.consumer.isRunning(),
    ready: (nowMs) => supervised.consumer.ready(nowMs),
  });
  await supervised.consumer.start();
  deps.metrics.startAtZero('consumed', options.topics);
  const positions = createGroupPositions(deps.kafka, options);
  const stallWatch = openStallWatch(deps, options, supervised, positions);
  stallWatch.start();
  const strayWatch = openStrayWatch(deps, options, supervised);
  const clockWatch = watchForClockRollback({
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
    onRollback(byMs) {
      deps.logger.warn(
        { groupId: options.groupId, byMs },
        'the clock was set back, replacing the consumer',
      );
      void replaceConsumer(deps, options, supervised);
    },
  });
  return {
    isRunning: () => supervised.consumer.isRunning(),
    isAlive: stallWatch.isAlive,
    async stop(drainMs) {
      supervised.stopping.abort();
      stallWatch.stop();
      void strayWatch?.stop();
      clockWatch.stop();
      await Promise.all([
        supervised.consumer.stop(drainMs),
        supervised.replaced,
        positions.close(),
      ]);
    },
  };
}

function openStallWatch(
  deps: ConsumeDeps,
  options: ConsumeOptions,
  supervised: Supervised,
  positions: GroupPositions,
): StallWatch {
  const { topics, groupId, stallMs = STALL_MS, areStoresUp = () => true } = options;
  const logger = deps.logger.child({ groupId });
  return createStallWatch({
    topics,
    stallMs,
    areStoresUp,
    metrics: deps.metrics,
    readPositions: createFollowEnds({
      positions,
      consumer: () => supervised.consumer,
      readiness: options.readiness ?? READY_WHEN_WRITTEN,
      nowMs: systemClockMs,
      logger,
    }),
    consumer: () => supervised.consumer,
    replaceConsumer: () => replaceConsumer(deps, options, supervised),
    nowMs: systemClockMs,
    monotonicMs: monotonicClockMs,
    logger,
  });
}

/** Returns null for a group that follows no other one. */
function openStrayWatch(
  deps: ConsumeDeps,
  options: ConsumeOptions,
  supervised: Supervised,
): Loop | null {
  if (options.sharing?.kind !== 'following') return null;
  const watch = createStrayWatch({
    share: deps.share,
    consumer: () => supervised.consumer,
    replaceConsumer: () => replaceConsumer(deps, options, supervised),
    logger: deps.logger.child({ groupId: options.groupId }),
  });
  watch.start();
  return watch;
}

async function replaceConsumer(
  deps: ConsumeDeps,
  options: ConsumeOptions,
  supervised: Supervised,
): Promise<void> {
  const { signal } = supervised.stopping;
  supervised.replaced = Promise.all([supervised.replaced, supervised.consumer.discard()]).then(
    () => undefined,
  );
  const consumer = createGroupConsumer(deps, options);
  supervised.consumer = consumer;
  // The old one leaves first, so that its partitions need not move twice.
  await supervised.replaced;
  if (signal.aborted) return;
  const logger = deps.logger.child({ groupId: options.groupId });
  const keepTrying = createKeepTrying({ logger, signal });
  // Not awaited: joining takes as long as Kafka is away, and the stall watch must run meanwhile.
  keepTrying('start the new consumer', consumer.start).catch((error: unknown) => {
    if (error instanceof StoppedError) return;
    logger.error({ err: error }, 'the new consumer did not start');
  });
}
