import type { Kafka } from 'kafkajs';
import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { type Loop, startTicker } from '../../async/loop.ts';
import { withTimeout } from '../../async/pause.ts';
import { monotonicClockMs, systemClockMs } from '../../service/clock-and-ids.ts';
import type { Logger } from '../../service/logger.ts';
import type { GroupEvents, OpenGroupClient } from '../group-client.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import { createGroupPositions, type GroupPositions } from '../offsets/group-positions.ts';
import type { OffsetCommitter, SendCommit } from '../offsets/offset-committer.ts';
import type { OwnedPartitions } from '../offsets/owned-partitions.ts';
import type { PausedPartitions } from '../offsets/paused-partitions.ts';
import { type ConsumeOptions, type Consumption, TOGETHER } from '../record-log.ts';
import { createFollowEnds, READY_WHEN_WRITTEN, type UnreadRecords } from '../unread-records.ts';
import { createGroupConsumer, type GroupConsumer } from './group-consumer.ts';
import { createStrayWatch, type ProcessShare } from './partition-assignment.ts';
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

export interface ConsumeDeps {
  /** Reads the positions of the group. */
  kafka: Kafka;
  openGroupClient: OpenGroupClient;
  /** What this process has and reports in its groups. */
  share: ProcessShare;
  logger: Logger;
  metrics: KafkaMetrics;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}

interface ClockRollbackDeps {
  /** The wall clock. */
  nowMs: () => number;
  monotonicMs: () => number;
  onRollback: (byMs: number) => void;
}

export interface ClockRollbackWatch {
  /** Compares the clocks; called once a second. */
  tick: () => void;
  stop: () => void;
}

const EVERY_MS = 1_000;
/** Heartbeats that are late by this much still keep a session of ten seconds. */
const TOLERATED_MS = 2_000;

/**
 * Calls `onRollback` when the wall clock was set back. kafkajs times its heartbeats by the wall clock:
 * when that is set back by an hour, it sends none for an hour. Its group gives its partitions to others
 * after ten seconds, and it continues to read them.
 */
export function watchForClockRollback(deps: ClockRollbackDeps): ClockRollbackWatch {
  const { nowMs, monotonicMs, onRollback } = deps;
  const difference = (): number => nowMs() - monotonicMs();
  let lastMs = difference();
  const tick = (): void => {
    const byMs = lastMs - difference();
    lastMs -= byMs;
    if (byMs > TOLERATED_MS) onRollback(byMs);
  };
  const ticker = startTicker(EVERY_MS, tick);
  return { tick, stop: ticker.stop };
}

/** What a consumer knows of its membership in the group. */
export interface Membership {
  isRunning: boolean;
  /** True once the consumer was stopped or discarded; its events are ignored from then on. */
  isOver: boolean;
  /** True while the group changes: what is begun now may be begun by another member as well. */
  isRebalancing: boolean;
  assignment: Readonly<Record<string, number[]>>;
  sendCommit: SendCommit | null;
  /** How many rounds the fetch loop has made. */
  fetches: number;
}

/** The parts of a consumer that change with its group. */
interface MemberParts {
  options: ConsumeOptions;
  offsets: OwnedPartitions;
  unread: Pick<UnreadRecords, 'retainOnly'>;
  pausedPartitions: PausedPartitions;
  metrics: KafkaMetrics;
  membership: Membership;
  committer: Pick<OffsetCommitter, 'commitNow'>;
  share: Pick<ProcessShare, 'joined'>;
}

/** The other members wait for the join of this one. */
const COMMITTED_WITHIN_MS = 1_000;

/** Handlers that keep a consumer up to date with its group. `parts` is called with each event. */
export function membershipEvents(
  parts: () => MemberParts,
  onFatal: ConsumeDeps['onFatal'],
): Omit<GroupEvents, 'onBatch'> {
  return {
    onFetch() {
      parts().membership.fetches += 1;
    },
    onRebalancing() {
      const { membership, options, committer } = parts();
      if (membership.isOver) return Promise.resolve();
      membership.isRebalancing = true;
      options.onRebalancing?.();
      // What is not committed before the join is done again by the next owner.
      return withTimeout(committer.commitNow(), COMMITTED_WITHIN_MS).catch(() => undefined);
    },
    onConfirmed() {
      // A change that came to nothing ends so: a coordinator that has just moved refuses both the
      // heartbeat and the join, and knows the group as it was when it has loaded it.
      parts().membership.isRebalancing = false;
    },
    onJoined(assignment) {
      join(parts(), assignment);
    },
    onLost() {
      const { membership, metrics } = parts();
      if (membership.isOver) return;
      leave(membership);
      metrics.restarts.inc();
    },
    onFatal(error) {
      const { membership, options } = parts();
      if (membership.isOver) return;
      leave(membership);
      onFatal(`the consumer of ${options.groupId} stopped: ${error.message}`);
    },
  };
}

function join(
  { offsets, unread, pausedPartitions, membership, metrics, options, share }: MemberParts,
  assignment: Membership['assignment'],
): void {
  if (membership.isOver) return;
  metrics.rebalances.inc();
  // Between two joins the group may have had an assignment that this member never saw.
  offsets.markAllStale();
  offsets.retainOnly(assignment);
  unread.retainOnly(assignment);
  metrics.keepLagOf(options.topics, assignment);
  pausedPartitions.resumeAll();
  membership.assignment = assignment;
  membership.isRunning = true;
  membership.isRebalancing = false;
  share.joined(options.sharing ?? TOGETHER, assignment);
  options.onAssigned?.(assignment);
}

function leave(membership: Membership): void {
  membership.isRunning = false;
  membership.sendCommit = null;
}
