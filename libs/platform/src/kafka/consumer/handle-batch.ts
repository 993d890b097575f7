import { StoppedError, type KeepTrying } from '../../async/keep-trying.ts';
import type { Logger } from '../../service/logger.ts';
import type { UnreadRecords } from '../backlog/unread-records.ts';
import type { FinishedRecords, KafkaMetrics } from '../kafka-metrics.ts';
import {
  canBegin,
  MAX_UNCOMMITTED,
  type OwnedPartition,
  type OwnedPartitions,
} from '../offsets/owned-partitions.ts';
import type { PausedPartitions } from '../offsets/paused-partitions.ts';
import { readOn } from '../offsets/reading-position.ts';
import { contentOf } from '../record-content.ts';
import type { ConsumeOptions, LogRecord, Readiness } from '../record-log.ts';
import type { FetchedBatch, FetchedMessage } from './fetched-batch.ts';

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
