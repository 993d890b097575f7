import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { createKeepTrying, type KeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { withTimeout } from '../../async/pause.ts';
import { systemClockMs } from '../../service/clock-and-ids.ts';
import type { Logger } from '../../service/logger.ts';
import type { FetchedBatch, FetchedMessage, GroupClient, GroupEvents } from '../group-client.ts';
import type { FinishedRecords, KafkaMetrics } from '../kafka-metrics.ts';
import {
  createOffsetCommitter,
  type OffsetCommitter,
  type SendCommit,
} from '../offsets/offset-committer.ts';
import {
  canBegin,
  createOwnedPartitions,
  MAX_UNCOMMITTED,
  type OwnedPartition,
  type OwnedPartitions,
  readOn,
} from '../offsets/owned-partitions.ts';
import { createPausedPartitions, type PausedPartitions } from '../offsets/paused-partitions.ts';
import {
  type ConsumeOptions,
  contentOf,
  type LogRecord,
  type Readiness,
  type ReadyRecords,
  TOGETHER,
  type TopicPartition,
} from '../record-log.ts';
import {
  createUnreadRecords,
  type PartitionEnd,
  READY_WHEN_WRITTEN,
  readyRecords,
  type UnreadRecords,
} from '../unread-records.ts';
import { type ConsumeDeps, type Membership, membershipEvents } from './consume.ts';
import type { ProcessShare } from './partition-assignment.ts';

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

export interface BatchHandling {
  handle: ConsumeOptions['handle'];
  logFieldsIn: ConsumeOptions['logFieldsIn'];
  delayMs: ConsumeOptions['delayMs'];
  inFlightLimits: ConsumeOptions['inFlightLimits'];
  mayRead: ConsumeOptions['mayRead'];
  offsets: OwnedPartitions;
  unread: UnreadRecords;
  readiness: Readiness;
  /** Topic → how many of its records are finished. */
  finished: ReadonlyMap<string, FinishedRecords>;
  /** The records in flight, those of partitions that went to another member included. */
  running: Set<LogRecord>;
  pausedPartitions: PausedPartitions;
  /** Ends when `stopping` is aborted. */
  keepTrying: KeepTrying;
  logger: Pick<Logger, 'warn' | 'error'>;
  metrics: KafkaMetrics;
  /** Aborted when no further record is to be begun. */
  stopping: AbortSignal;
}

/** Begins the work on a batch and returns at once. Never throws: an error here would end the consumer. */
export function handleBatch(handling: BatchHandling, payload: FetchedBatch): void {
  const { topic, partition, messages, highWatermark } = payload.batch;
  const { offsets, pausedPartitions, metrics } = handling;
  const first = messages[0];
  if (!first) return;
  const endOffset = Number(highWatermark);
  const owned = offsets.ofBatch(topic, partition, { firstOffset: Number(first.offset), endOffset });
  if (!owned) return;
  if (handling.stopping.aborted) {
    pausedPartitions.pauseForCapacity(topic, partition);
    return;
  }
  metrics.consumed.inc({ topic }, beginRecords(handling, payload, owned));
  metrics.setLag(topic, partition, endOffset - (owned.offsets.committable() ?? owned.resumesAt));
  resumeReading(handling, topic);
}

/** Returns how many records it began, up to where the in-flight limit is reached or one is not due. */
function beginRecords(
  handling: BatchHandling,
  payload: FetchedBatch,
  owned: OwnedPartition,
): number {
  const { topic, partition } = owned;
  const endOffset = Number(payload.batch.highWatermark);
  let begun = 0;
  let readTo: number | null = null;
  let last: LogRecord | null = null;
  for (const message of payload.batch.messages) {
    const record = toRecord(owned, message);
    last = record;
    if (isFull(handling, owned, record.offset)) {
      handling.pausedPartitions.pauseForCapacity(topic, partition);
      break;
    }
    const delayMs = handling.delayMs?.(record, endOffset) ?? 0;
    if (delayMs > 0) {
      handling.pausedPartitions.delay(topic, partition, delayMs);
      break;
    }
    if (owned.offsets.begin(record.offset)) {
      void work(handling, record, owned);
      begun += 1;
    }
    payload.resolveOffset(message.offset);
    readTo = record.offset + 1;
  }
  if (readTo !== null) readOn(owned.reading, readTo);
  if (last) noteUnread(handling, owned, { last, readTo, endOffset });
  return begun;
}

interface Taken {
  /** The last record that was looked at: the first that was not begun, if the batch has one. */
  last: LogRecord;
  readTo: number | null;
  endOffset: number;
}

function noteUnread(
  { unread, readiness }: BatchHandling,
  { topic, partition, offsets }: OwnedPartition,
  { last, readTo, endOffset }: Taken,
): void {
  // After a change of the group, what was begun before it is read again and passed.
  const nextOffset = Math.max(readTo ?? last.offset, offsets.highest() + 1);
  const nextSinceMs = readiness.sinceMs(last);
  unread.noteBatch({ topic, partition, nextOffset, endOffset, nextSinceMs });
}

function isFull(handling: BatchHandling, owned: OwnedPartition, offset: number): boolean {
  const { offsets, inFlightLimits, mayRead } = handling;
  const inFlight = offsets.inFlightIn(owned.topic);
  if (inFlight >= inFlightLimits.pauseAt || !canBegin(owned, offset)) return true;
  // With nothing in flight no record would end and ask again, so one record is always read.
  return mayRead?.() === false && inFlight > 0;
}

/**
 * An outage is waited for. A fault of the program is not: a webhook that was sent before a TypeError
 * would be sent again with every try. Such a record, and one whose retries a stop has ended, is never
 * committed; it is read again after a restart or by the consumer that replaces this stalled one.
 */
async function work(
  handling: BatchHandling,
  record: LogRecord,
  owned: OwnedPartition,
): Promise<void> {
  const { offsets } = owned;
  const finished = handling.finished.get(record.topic);
  const placeOf = (): object => {
    const { topic, partition, offset, key } = record;
    return { topic, partition, offset, key, ...handling.logFieldsIn?.(record) };
  };
  handling.running.add(record);
  try {
    const isOurs = (): boolean => !owned.isGone;
    await handling.keepTrying('handle a record', () => handling.handle(record, isOurs), placeOf);
    offsets.finish(record.offset);
    if (finished) finished.records += 1;
  } catch (error) {
    offsets.abandon(record.offset);
    const sinceMs = handling.readiness.sinceMs(record);
    owned.abandonedSinceMs = Math.min(owned.abandonedSinceMs, sinceMs);
    if (!(error instanceof StoppedError)) {
      handling.logger.error(
        { err: error, ...placeOf() },
        'a record failed and is left uncommitted until the consumer restarts',
      );
    }
  } finally {
    handling.running.delete(record);
  }
  resumeReading(handling, record.topic);
}

/** Resumes a partition of the topic when there is capacity again. */
export function resumeReading(handling: BatchHandling, topic: string): void {
  const { offsets, pausedPartitions, inFlightLimits, stopping } = handling;
  const inFlight = offsets.inFlightIn(topic);
  if (stopping.aborted || inFlight > inFlightLimits.resumeAt) return;
  if (handling.mayRead?.() === false && inFlight > 0) return;
  pausedPartitions.resumeNext(
    (paused) =>
      paused.topic === topic &&
      offsets.uncommittedIn(paused.topic, paused.partition) < MAX_UNCOMMITTED / 2,
  );
}

function toRecord(
  { topic, partition, inheritedBelow, sinceMs }: OwnedPartition,
  message: FetchedMessage,
): LogRecord {
  const offset = Number(message.offset);
  return {
    topic,
    partition,
    offset,
    ...contentOf(message),
    isInherited: offset < inheritedBelow,
    ownedSinceMs: sinceMs,
    timestampMs: Number(message.timestamp),
  };
}
