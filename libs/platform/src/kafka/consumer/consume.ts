import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { monotonicClockMs } from '../../service/clock-and-ids.ts';
import { createGroupPositions } from '../offsets/group-positions.ts';
import type { ConsumeOptions, Consumption } from '../record-log.ts';
import { createFollowEnds, READY_WHEN_WRITTEN } from '../unread-records.ts';
import { type ConsumerDeps, GroupConsumer } from './group-consumer.ts';
import { createStrayWatch } from './partition-assignment.ts';
import { StallWatch } from './stall-watch.ts';

const STALL_MS = 110_000;

/** Reads the topics as one member of the group until stopped; replaces its consumer when that one stalls. */
export async function consume(deps: ConsumerDeps, options: ConsumeOptions): Promise<Consumption> {
  const { topics, groupId, sharing, readiness = READY_WHEN_WRITTEN } = options;
  const { stallMs = STALL_MS, areStoresUp = () => true } = options;
  const { kafka, metrics, share, nowMs } = deps;
  const logger = deps.logger.child({ groupId });
  const { consumer, replaceConsumer, stop } = createReplaceable(deps, options);
  metrics.show(groupId, {
    isRunning: () => consumer().isRunning(),
    ready: (nowMs) => consumer().ready(nowMs),
  });
  await consumer().start();
  metrics.startAtZero('consumed', topics);
  const positions = createGroupPositions(kafka, { groupId, topics });
  const stallWatch = new StallWatch({
    topics,
    stallMs,
    areStoresUp,
    readPositions: createFollowEnds({ positions, consumer, readiness, nowMs, logger }),
    consumer,
    replaceConsumer,
    nowMs,
    monotonicMs: monotonicClockMs,
    logger,
    metrics,
  });
  stallWatch.start();
  const strayWatch = createStrayWatch({ share, consumer, replaceConsumer, logger });
  if (sharing?.kind === 'following') strayWatch.start();
  return {
    isRunning: () => consumer().isRunning(),
    isAlive: () => stallWatch.isAlive(),
    async stop(drainMs) {
      stallWatch.stop();
      void strayWatch.stop();
      await Promise.all([stop(drainMs), positions.close()]);
    },
  };
}

/** A consumer that can be replaced by a new one while it runs. */
function createReplaceable(deps: ConsumerDeps, options: ConsumeOptions) {
  const logger = deps.logger.child({ groupId: options.groupId });
  const stopping = new AbortController();
  let consumer = new GroupConsumer(deps, options);
  /** Resolves when every consumer before the present one has left the group. */
  let replaced: Promise<unknown> = Promise.resolve();
  return {
    consumer: (): GroupConsumer => consumer,
    replaceConsumer: async (): Promise<void> => {
      replaced = Promise.all([replaced, consumer.discard()]);
      const next = new GroupConsumer(deps, options);
      consumer = next;
      // The old one leaves first, so that its partitions need not move twice.
      await replaced;
      if (stopping.signal.aborted) return;
      const keepTrying = createKeepTrying({ logger, signal: stopping.signal });
      // Not awaited: joining takes as long as Kafka is away, and the stall watch must run meanwhile.
      keepTrying('start the new consumer', () => next.start()).catch((error: unknown) => {
        if (error instanceof StoppedError) return;
        logger.error({ err: error }, 'the new consumer did not start');
      });
    },
    stop: async (drainMs: number): Promise<void> => {
      stopping.abort();
      await Promise.all([consumer.stop(drainMs), replaced]);
    },
  };
}
