import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { createKeepTrying } from '../../async/keep-trying.ts';
import { withTimeout } from '../../async/pause.ts';
import { systemClockMs } from '../../service/clock-and-ids.ts';
import {
  createOffsetCommitter,
  type OffsetCommitter,
  type SendCommit,
} from '../offsets/offset-committer.ts';
import { createOwnedPartitions } from '../offsets/owned-partitions.ts';
import { createPausedPartitions } from '../offsets/paused-partitions.ts';
import { READY_WHEN_WRITTEN, readyRecords } from '../backlog/ready-records.ts';
import { createUnreadRecords, type PartitionEnd } from '../backlog/unread-records.ts';
import { TOGETHER, type ConsumeOptions, type ReadyRecords } from '../record-log.ts';
import type { TopicPartition } from '../topic-partition.ts';
import type { ConsumeDeps } from './consume-deps.ts';
import type { FetchedBatch } from './fetched-batch.ts';
import type { GroupClient, GroupEvents } from './group-client.ts';
import { membershipEvents, type Membership } from './group-membership.ts';
import { handleBatch, resumeReading, type BatchHandling } from './handle-batch.ts';
import type { ProcessShare } from './process-share.ts';

/** One consumer with its own offsets and pauses; the consumer that replaces it shares nothing with it. */
export interface GroupConsumer {
  /** Joins the group and reads. Rejects when Kafka cannot be reached. */
  start: () => Promise<void>;
  /** As Consumption.stop says. */
  stop: (drainMs: number) => Promise<void>;
  /** Leaves the group without waiting and without a commit; results of records in flight are ignored. */
  discard: () => Promise<void>;
  isRunning: () => boolean;
  assigned: () => TopicPartition[];
  /** True where nothing can move now: the next record is not due, or the partition waits for capacity. */
  isWaiting: (partition: TopicPartition) => boolean;
  /** Topic → what is ready and not finished, see readyRecords. */
  ready: (nowMs: number) => ReadonlyMap<string, ReadyRecords>;
  noteEnds: (ends: readonly PartitionEnd[], nowMs: number) => void;
  mayBeDue: (partition: TopicPartition, nowMs: number) => boolean;
  /** How many rounds the fetch loop has made. */
  fetches: () => number;
}

interface Parts extends BatchHandling {
  options: ConsumeOptions;
  client: GroupClient;
  committer: OffsetCommitter;
  membership: Membership;
  stopReading: AbortController;
  share: ProcessShare;
}

const DRAIN_CHECK_MS = 20;
/** Most attempts end within this time, and nobody has to wait for them. Nobody reads its partitions meanwhile. */
const HANDED_OVER_AFTER_MS = 250;
/** A rebalance that runs ends within the session timeout of ten seconds, or is not worth the wait. */
const LEAVE_TIMEOUT_MS = 8_000;

export function createGroupConsumer(deps: ConsumeDeps, options: ConsumeOptions): GroupConsumer {
  const parts = createParts(deps, options);
  const { membership, offsets, unread, readiness, running } = parts;
  const { pausedPartitions, inFlightLimits } = parts;
  const { topics } = options;
  return {
    start: () => start(parts),
    stop: (drainMs) => stop(parts, drainMs),
    async discard() {
      parts.committer.cancel();
      await leave(parts);
    },
    isRunning: () => membership.isRunning,
    assigned: () =>
      Object.entries(membership.assignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => ({ topic, partition })),
      ),
    isWaiting(tp) {
      if (offsets.uncommittedIn(tp.topic, tp.partition) > 0) return false;
      if (pausedPartitions.isDelayed(tp)) return true;
      return (
        pausedPartitions.isPausedForCapacity(tp) &&
        offsets.inFlightIn(tp.topic) > inFlightLimits.resumeAt
      );
    },
    ready: (nowMs) => {
      const { assignment } = membership;
      return readyRecords({ topics, assignment, running, offsets, unread, readiness }, nowMs);
    },
    noteEnds: unread.noteEnds,
    mayBeDue: unread.mayBeDue,
    fetches: () => membership.fetches,
  };
}

function createParts(deps: ConsumeDeps, options: ConsumeOptions): Parts {
  const membership: Membership = {
    isRunning: false,
    isOver: false,
    isRebalancing: false,
    assignment: {},
    sendCommit: null,
    fetches: 0,
  };
  const { share } = deps;
  const client = openClient(deps, options, () => parts);
  const stopReading = new AbortController();
  // Each record that waits for its next try listens to it.
  setMaxListeners(0, stopReading.signal);
  const logger = deps.logger.child({ groupId: options.groupId });
  const readiness = options.readiness ?? READY_WHEN_WRITTEN;
  const handling: BatchHandling = {
    handle: options.handle,
    logFieldsIn: options.logFieldsIn,
    delayMs: options.delayMs,
    inFlightLimits: options.inFlightLimits,
    mayRead: options.mayRead,
    offsets: createOwnedPartitions(systemClockMs),
    unread: createUnreadRecords((topic) => readiness.afterMs(topic) > 0),
    readiness,
    finished: new Map(
      options.topics.map((topic) => [topic, deps.metrics.finishedOf(options.groupId, topic)]),
    ),
    running: new Set(),
    pausedPartitions: createPausedPartitions(client),
    keepTrying: createKeepTrying({ logger, signal: stopReading.signal }),
    logger,
    metrics: deps.metrics,
    stopping: stopReading.signal,
  };
  const committer = createOffsetCommitter({
    offsets: handling.offsets,
    logger,
    metrics: deps.metrics,
    currentCommit: () => membership.sendCommit,
    onCommitted() {
      for (const topic of options.topics) resumeReading(handling, topic);
    },
  });
  const parts: Parts = { ...handling, options, client, committer, membership, stopReading, share };
  return parts;
}

function openClient(deps: ConsumeDeps, options: ConsumeOptions, parts: () => Parts): GroupClient {
  const { sharing = TOGETHER } = options;
  const events: GroupEvents = {
    ...membershipEvents(parts, deps.onFatal),
    onBatch(batch, sendCommit) {
      acceptBatch(parts(), batch, sendCommit);
    },
  };
  return deps.openGroupClient(options, events, () => deps.share.reportFor(sharing));
}

async function start({ client, committer, membership }: Parts): Promise<void> {
  await client.start();
  if (!membership.isOver) committer.start();
}

async function stop(parts: Parts, drainMs: number): Promise<void> {
  const { offsets, running, options, stopReading, committer } = parts;
  stopReading.abort();
  const drained = performance.now() + drainMs;
  const handedOver = performance.now() + Math.min(drainMs, HANDED_OVER_AFTER_MS);
  // Asked each time: Redis may go away meanwhile.
  const until = (): number => (options.mayHandOver?.() ? handedOver : drained);
  await waitFor(offsets.isIdle, until);
  await committer.stop();
  await leave(parts);
  // Also those whose partition went to another member before.
  await waitFor(
    () => running.size === 0,
    () => drained,
  );
}

async function waitFor(isOver: () => boolean, untilMs: () => number): Promise<void> {
  while (!isOver() && performance.now() < untilMs()) await wait(DRAIN_CHECK_MS);
}

async function leave(parts: Parts): Promise<void> {
  const { membership, stopReading, pausedPartitions, offsets, client, logger } = parts;
  membership.isOver = true;
  membership.isRunning = false;
  membership.sendCommit = null;
  stopReading.abort();
  pausedPartitions.close();
  offsets.retainOnly({});
  await withTimeout(client.leave(), LEAVE_TIMEOUT_MS).catch((error: unknown) => {
    logger.warn(
      { err: error },
      'the consumer did not leave its group; its partitions are idle until its session times out',
    );
  });
}

function acceptBatch(parts: Parts, batch: FetchedBatch, sendCommit: SendCommit): void {
  const { topic, partition } = batch.batch;
  const { membership } = parts;
  // The records are read again after the change, by their next owner.
  if (membership.isOver || membership.isRebalancing) return;
  // A fetch that was under way may be handed over when the partition is ours no longer.
  if (!membership.assignment[topic]?.includes(partition)) return;
  membership.sendCommit = sendCommit;
  handleBatch(parts, batch);
}
