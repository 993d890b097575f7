import { type KeepTrying, StoppedError } from '../../async/keep-trying.ts';
import type { Logger } from '../../service/logger.ts';
import type { FinishedRecords, KafkaMetrics } from '../kafka-metrics.ts';
import {
  canBegin,
  createOwnedPartitions,
  MAX_UNCOMMITTED,
  type OwnedPartition,
  readOn,
} from '../offsets/owned-partitions.ts';
import { createPausedPartitions, type Pausable } from '../offsets/paused-partitions.ts';
import {
  type ConsumeOptions,
  contentOf,
  createIsAssigned,
  GiveBackError,
  type LogRecord,
  type Readiness,
  type ReadyRecords,
  type TopicPartition,
} from '../record-log.ts';
import { createUnreadRecords, READY_WHEN_WRITTEN } from '../unread-records.ts';
import { describeUnreadable } from '../fetch/record-batches.ts';
import type { FetchedBatch, FetchedMessage } from './group-client.ts';

/** With fewer records at once, a partition costs more than it gains: an ingested batch has up to 200. */
const LEAST_SHARE = 50;

interface BatchHandlerDeps {
  /** Pauses and resumes the partitions of the consumer, and moves the place where one is read. */
  client: Pausable;
  /** Ends when `stopping` is aborted. */
  keepTrying: KeepTrying;
  /** Aborted when no further record is to be begun. */
  stopping: AbortSignal;
  /** Milliseconds since 1970. */
  nowMs: () => number;
  logger: Pick<Logger, 'error'>;
  metrics: Pick<KafkaMetrics, 'consumed' | 'finishedOf' | 'setLag'>;
}

/** Topic → the partitions that this member owns. */
type Assignment = Readonly<Record<string, number[]>>;

/** The records of one consumer, from the batch in which they are read until their offsets may be committed. */
export class BatchHandler {
  readonly offsets;
  readonly unread;
  readonly #pauses;
  readonly #options: ConsumeOptions;
  readonly #deps: BatchHandlerDeps;
  readonly #readiness: Readiness;
  readonly #finished: ReadonlyMap<string, FinishedRecords>;
  /** The records under work, those of partitions that went to another member included. */
  readonly #running = new Set<LogRecord>();

  constructor(options: ConsumeOptions, deps: BatchHandlerDeps) {
    const { groupId, topics, readiness = READY_WHEN_WRITTEN } = options;
    this.#options = options;
    this.#deps = deps;
    this.#readiness = readiness;
    this.offsets = createOwnedPartitions(deps.nowMs);
    this.unread = createUnreadRecords((topic) => readiness.afterMs(topic) > 0);
    this.#pauses = createPausedPartitions(deps.client);
    this.#finished = new Map(
      topics.map((topic) => [topic, deps.metrics.finishedOf(groupId, topic)]),
    );
  }

  /** To be called each time the group has changed. */
  assign(assignment: Assignment): void {
    // Between two joins the group may have had an assignment that this member never saw.
    this.offsets.markAllStale();
    this.offsets.retainOnly(assignment);
    this.unread.retainOnly(assignment);
    this.#pauses.resumeAll();
  }

  /** Gives up every partition: results of records in flight are ignored from then on. */
  close(): void {
    this.#pauses.close();
    this.offsets.retainOnly({});
  }

  /** True when no record is under work, those of partitions that went to another member included. */
  isIdle(): boolean {
    return this.#running.size === 0;
  }

  /** True where nothing can move now: the next record is not due, or the partition waits for capacity or for others. */
  isWaiting(tp: TopicPartition): boolean {
    if (this.#options.isWaiting?.(tp)) return true;
    if (this.offsets.uncommittedIn(tp.topic, tp.partition) > 0) return false;
    if (this.#pauses.isDelayed(tp)) return true;
    if (!this.#pauses.isPausedForCapacity(tp)) return false;
    return !this.#hasCapacity(tp.topic) || this.#options.mayRead?.(tp.topic) === false;
  }

  /**
   * Returns by topic the ready records that are not finished: those not begun, those under work, and those that
   * failed by a fault of the program. A record that is finished behind one of these does not count, so one that
   * hangs counts as one. Walks over all records under work: 50,000 take about 2 ms.
   */
  ready(assignment: Assignment, nowMs: number): Map<string, ReadyRecords> {
    const { topics } = this.#options;
    const isAssigned = createIsAssigned(assignment);
    const unread = this.unread.ready(nowMs);
    const none = (): ReadyRecords => ({ records: 0, oldestMs: Infinity });
    const ready = new Map(topics.map((topic) => [topic, unread.get(topic) ?? none()]));
    for (const record of this.#running) {
      const ofTopic = ready.get(record.topic);
      if (!ofTopic || !isAssigned(record)) continue;
      const sinceMs = this.#readiness.sinceMs(record);
      if (sinceMs <= nowMs) add(ofTopic, { records: 1, oldestMs: sinceMs });
    }
    for (const [topic, abandoned] of this.offsets.abandoned()) {
      const ofTopic = ready.get(topic);
      if (ofTopic) add(ofTopic, abandoned);
    }
    return ready;
  }

  /** Begins the work on a batch and returns at once. Never throws: an error here would end the consumer. */
  handle(payload: FetchedBatch): void {
    const { batch } = payload;
    const { topic, partition } = batch;
    const firstOffset = batch.firstOffset();
    if (firstOffset === null) return;
    const endOffset = Number(batch.highWatermark);
    const range = { firstOffset: Number(firstOffset), endOffset };
    const owned = this.offsets.ofBatch(topic, partition, range);
    if (!owned) return;
    if (this.#deps.stopping.aborted) {
      this.#pauses.pauseForCapacity(topic, partition);
      return;
    }
    const { consumed, setLag } = this.#deps.metrics;
    consumed.inc({ topic }, this.#begin(payload, owned, endOffset));
    setLag(topic, partition, endOffset - (owned.offsets.committable() ?? owned.resumesAt));
    this.resumeReading(topic);
  }

  /** Resumes one partition of the topic when there is capacity again. */
  resumeReading(topic: string): void {
    if (this.#deps.stopping.aborted || !this.#hasCapacity(topic)) return;
    if (this.#options.mayRead?.(topic) === false && this.offsets.inFlightIn(topic) > 0) return;
    // Nearly always none is paused, and this is called for each record.
    let share: number | undefined;
    this.#pauses.resumeNext(
      (paused) =>
        paused.topic === topic &&
        this.offsets.inFlightOf(paused) <= (share ??= this.#shareIn(topic)) / 2 &&
        this.offsets.uncommittedIn(paused.topic, paused.partition) < MAX_UNCOMMITTED / 2,
    );
  }

  /** How many records of one partition may be in flight. */
  #shareIn(topic: string): number {
    const { pauseAt, isShared } = this.#options.inFlightLimits;
    if (!isShared) return Infinity;
    const busy = this.offsets.busyIn(topic, (each) => this.#pauses.isPausedForCapacity(each));
    return Math.max(LEAST_SHARE, Math.ceil(pauseAt / Math.max(1, busy)));
  }

  #hasCapacity(topic: string): boolean {
    return this.offsets.inFlightIn(topic) <= this.#options.inFlightLimits.resumeAt;
  }

  /** Returns how many records it began, up to where the in-flight limit is reached or one is not due. */
  #begin(payload: FetchedBatch, owned: OwnedPartition, endOffset: number): number {
    const { topic, partition, offsets } = owned;
    let begun = 0;
    let readTo: number | null = null;
    let last: LogRecord | null = null;
    const share = this.#shareIn(topic);
    for (const message of payload.batch.messages) {
      const record = toRecord(owned, message);
      last = record;
      if (!this.#mayBegin(record, owned, { endOffset, share })) break;
      if (offsets.begin(record.offset)) {
        void this.#work(record, owned);
        begun += 1;
      }
      payload.resolveOffset(message.offset);
      readTo = record.offset + 1;
    }
    const isWhole = last === null || readTo === last.offset + 1;
    if (isWhole) readTo = passEnd(payload, owned);
    if (readTo !== null) readOn(owned, readTo);
    // After a change of the group, records that were begun before it are read again and passed.
    const nextOffset = Math.max(readTo ?? last?.offset ?? 0, offsets.highest() + 1);
    const nextSinceMs = last ? this.#readiness.sinceMs(last) : this.#deps.nowMs();
    this.unread.noteBatch({ topic, partition, nextOffset, endOffset, nextSinceMs });
    return begun;
  }

  /** Returns false, and pauses the partition, when too much is in flight or the record is not due. */
  #mayBegin(
    record: LogRecord,
    owned: OwnedPartition,
    { endOffset, share }: { endOffset: number; share: number },
  ): boolean {
    const { topic, partition, offsets } = owned;
    if (offsets.inFlight() >= share || this.#isFull(owned, record.offset)) {
      this.#pauses.pauseForCapacity(topic, partition);
      return false;
    }
    const delayMs = this.#options.delayMs?.(record, endOffset) ?? 0;
    if (delayMs > 0) this.#pauses.delay(topic, partition, delayMs);
    return delayMs <= 0;
  }

  #isFull(owned: OwnedPartition, offset: number): boolean {
    const { inFlightLimits, mayRead } = this.#options;
    const inFlight = this.offsets.inFlightIn(owned.topic);
    const { topic, partition } = owned;
    // With nothing to commit, one record may be further away: what is left of a batch of 180,000 that cannot be read.
    const isFar = this.offsets.uncommittedIn(topic, partition) > 0 && !canBegin(owned, offset);
    if (inFlight >= inFlightLimits.pauseAt || isFar) return true;
    // With nothing in flight no record would end and check again, so one record is always read.
    return mayRead?.(owned.topic) === false && inFlight > 0;
  }

  /**
   * Handles the record again after an outage. A fault of the program ends the work: a webhook that was sent before
   * a TypeError would be sent again with every try. Such a record, and one whose retries a stop has ended, is never
   * committed; it is read again after a restart or by the consumer that replaces this stalled one.
   */
  async #work(record: LogRecord, owned: OwnedPartition): Promise<void> {
    const { handle, logFieldsIn, takesUnreadable = false } = this.#options;
    const { topic, partition, offset, key } = record;
    const finished = this.#finished.get(topic);
    const logFields = (): object => ({ topic, partition, offset, key, ...logFieldsIn?.(record) });
    this.#running.add(record);
    try {
      const { unreadable } = record;
      if (unreadable && !takesUnreadable) throw new Error(describeUnreadable(unreadable));
      const isOurs = (): boolean => !owned.isGone;
      await this.#deps.keepTrying('handle a record', () => handle(record, isOurs), logFields);
      owned.offsets.finish(offset);
      if (finished) finished.records += 1;
    } catch (error) {
      if (error instanceof GiveBackError) this.#giveBack(record, owned, error);
      else this.#abandon(record, owned, { error, logFields });
    } finally {
      this.#running.delete(record);
    }
    this.resumeReading(topic);
  }

  /** Reads the partition again later. Its other records in flight end as if it had moved to another member. */
  #giveBack(record: LogRecord, owned: OwnedPartition, { readAgain }: GiveBackError): void {
    // Another record of it was given back before.
    if (owned.isGone || this.#deps.stopping.aborted) return;
    const { topic, partition } = owned;
    const nextOffset = this.offsets.giveBack(owned);
    if (nextOffset === null) return;
    const sinceMs = this.#readiness.sinceMs(record);
    this.unread.giveBack({ topic, partition, nextOffset, sinceMs });
    this.#pauses.readAgain({ topic, partition, offset: nextOffset }, readAgain);
  }

  #abandon(
    record: LogRecord,
    owned: OwnedPartition,
    { error, logFields }: { error: unknown; logFields: () => object },
  ): void {
    owned.offsets.abandon(record.offset);
    const sinceMs = this.#readiness.sinceMs(record);
    owned.abandonedSinceMs = Math.min(owned.abandonedSinceMs, sinceMs);
    if (error instanceof StoppedError) return;
    this.#deps.logger.error(
      { err: error, ...logFields() },
      'a record failed and is left uncommitted until the consumer restarts',
    );
  }
}

/**
 * Finishes the last offset of a batch whose records are all begun, and returns the one after it. It may be the end of a
 * transaction, which has an offset and is no record: without its commit the group lags behind for ever.
 */
function passEnd(payload: FetchedBatch, { offsets }: OwnedPartition): number {
  const { batch } = payload;
  const last = batch.lastOffset();
  const isNoRecord = last !== batch.messages.at(-1)?.offset;
  if (isNoRecord && offsets.begin(Number(last))) offsets.finish(Number(last));
  payload.resolveOffset(last);
  return Number(last) + 1;
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
    stored: message,
    ...(message.unreadable && { unreadable: message.unreadable }),
  };
}

function add(sum: ReadyRecords, { records, oldestMs }: ReadyRecords): void {
  sum.records += records;
  sum.oldestMs = Math.min(sum.oldestMs, oldestMs);
}
