import type { Admin, Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import { createKeepTrying } from '../async/keep-trying.ts';
import { withTimeout } from '../async/pause.ts';
import { messageOf } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { RETRY, withAdmin } from './connect.ts';
import { contentOf, type LogRecord } from './record-log.ts';

/** A record as it is stored in its topic. */
export interface StoredRecord extends Omit<
  LogRecord,
  'isInherited' | 'ownedSinceMs' | 'timestampMs'
> {
  /** When it was stored, in milliseconds since 1970. */
  atMs: number;
}

export interface ReadTopicOptions {
  topic: string;
  /** Leaves out records that are certainly older: milliseconds since 1970. */
  sinceMs?: number | undefined;
  /** Reads only these records, one of a partition. */
  only?: readonly { partition: number; offset: number }[] | undefined;
  /** A group that no other reader uses at the time. It is deleted at the end. */
  groupId: string;
  /** Kafka ends the reader after this time without a heartbeat, in milliseconds; 60,000 unless given. */
  sessionMs?: number;
  /** Called with one record after the other, those of one partition in their order. */
  visit: (record: StoredRecord) => Promise<void>;
  logger: Pick<Logger, 'warn'>;
}

/** Offsets of one partition to read; `end` is excluded. */
interface OffsetRange {
  partition: number;
  from: number;
  end: number;
}

/** kafkajs reads only as a member of a group. No other member joins this one, so a long session costs nothing. */
const SESSION_MS = 60_000;
/** A visit may outlast the session: the last one of a replay sends thousands of records again. */
const HEARTBEATS_PER_SESSION = 6;
const SILENCE_MS = 30_000;
const CLOSE_TIMEOUT_MS = 8_000;
const GROUPS_TIMEOUT_MS = 30_000;

/**
 * Reads the records that a topic has when it starts, and none that is added later. Commits nothing. Rejects
 * when there is no such topic, when `visit` rejects, or when Kafka sends no further record, or does not
 * serve the group, for 30 s.
 */
export async function readTopic(kafka: Kafka, options: ReadTopicOptions): Promise<void> {
  await withAdmin(kafka, {}, async (admin) => {
    const ranges = await readRanges(admin, options);
    if (ranges.length > 0) await readThrough(kafka, admin, ranges, options);
  });
}

async function readThrough(
  kafka: Kafka,
  admin: Admin,
  ranges: readonly OffsetRange[],
  options: ReadTopicOptions,
): Promise<void> {
  const { groupId, logger } = options;
  // A broker that has just started loads its groups first, and kafkajs does not retry a join meanwhile.
  const keepTrying = createKeepTrying({ logger, signal: AbortSignal.timeout(GROUPS_TIMEOUT_MS) });
  await keepTrying('describe the group of the reader', () => admin.describeGroups([groupId]));
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: options.sessionMs ?? SESSION_MS,
    maxWaitTimeInMs: 250,
    retry: { ...RETRY, restartOnFailure: () => Promise.resolve(false) },
  });
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [options.topic], fromBeginning: true });
    await consumeRanges(consumer, ranges, options);
  } finally {
    await withTimeout(consumer.disconnect(), CLOSE_TIMEOUT_MS).catch(() => undefined);
    // Kafka deletes an empty group without offsets by itself too, only later.
    await withTimeout(admin.deleteGroups([groupId]), CLOSE_TIMEOUT_MS).catch(() => undefined);
  }
}

/** Resolves when every range was visited. The consumer runs until it is disconnected. */
function consumeRanges(
  consumer: Consumer,
  ranges: readonly OffsetRange[],
  { topic, visit, sessionMs = SESSION_MS }: ReadTopicOptions,
): Promise<void> {
  const open = new Map(ranges.map((range) => [range.partition, { ...range }]));
  return new Promise((resolve, reject) => {
    const silence = createSilence(() => {
      reject(new Error(`Kafka returned no further record of ${topic} within ${SILENCE_MS} ms.`));
    });
    const end = (error?: unknown): void => {
      silence.close();
      // Batches that still arrive are not visited.
      open.clear();
      if (error === undefined) resolve();
      else reject(error instanceof Error ? error : new Error(messageOf(error)));
    };
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      end(payload.error);
    });
    const eachBatch = async (payload: EachBatchPayload): Promise<void> => {
      silence.pause();
      const beat = setInterval(() => {
        payload.heartbeat().catch(() => undefined);
      }, sessionMs / HEARTBEATS_PER_SESSION);
      // After an error thrown here kafkajs would hand the batch over again.
      await visitBatch(consumer, open, payload, visit).catch(end);
      clearInterval(beat);
      silence.start();
      if (open.size === 0) end();
    };
    silence.start();
    consumer
      .run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
      .then(() => {
        for (const { partition, from } of ranges) {
          consumer.seek({ topic, partition, offset: String(from) });
        }
      })
      .catch(end);
  });
}

async function visitBatch(
  consumer: Consumer,
  open: Map<number, OffsetRange>,
  payload: EachBatchPayload,
  visit: ReadTopicOptions['visit'],
): Promise<void> {
  const { batch } = payload;
  const { topic, partition, messages } = batch;
  for (const message of messages) {
    const range = open.get(partition);
    if (!range) break;
    const offset = Number(message.offset);
    // Records outside were fetched before the seek, or are fetched again after a connection error.
    if (offset >= range.from && offset < range.end) {
      const atMs = Number(message.timestamp);
      range.from = offset + 1;
      await visit({ topic, partition, offset, atMs, stored: message, ...contentOf(message) });
    }
    payload.resolveOffset(message.offset);
    if (offset >= range.end - 1) open.delete(partition);
    await payload.heartbeat();
  }
  // The last offset may be the end of a transaction, which is no record.
  const last = batch.lastOffset();
  payload.resolveOffset(last);
  if (Number(last) >= (open.get(partition)?.end ?? 0) - 1) open.delete(partition);
  if (!open.has(partition)) consumer.pause([{ topic, partitions: [partition] }]);
}

/** Calls `onSilence` when `start` was called and neither `pause` nor `close` followed for 30 s. */
function createSilence(onSilence: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const pause = (): void => {
    clearTimeout(timer);
  };
  return {
    start() {
      pause();
      if (!isClosed) timer = setTimeout(onSilence, SILENCE_MS);
    },
    pause,
    close() {
      isClosed = true;
      pause();
    },
  };
}

/** Returns the requested offsets that the topic has now. Throws when there is no such topic. */
async function readRanges(
  admin: Admin,
  { topic, sinceMs, only }: ReadTopicOptions,
): Promise<OffsetRange[]> {
  if (!(await admin.listTopics()).includes(topic)) throw new Error(`Kafka has no topic ${topic}.`);
  const whole = (await admin.fetchTopicOffsets(topic)).map(({ partition, low, high }) => ({
    partition,
    from: Number(low),
    end: Number(high),
  }));
  if (only) {
    const wanted = new Map(only.map(({ partition, offset }) => [partition, offset]));
    return whole.flatMap(({ partition, from, end }) => {
      const offset = wanted.get(partition);
      const exists = offset !== undefined && offset >= from && offset < end;
      return exists ? [{ partition, from: offset, end: offset + 1 }] : [];
    });
  }
  const starts =
    sinceMs === undefined ? [] : await admin.fetchTopicOffsetsByTimestamp(topic, sinceMs);
  const startIn = new Map(starts.map(({ partition, offset }) => [partition, Number(offset)]));
  return whole
    .map((range) => ({ ...range, from: Math.max(range.from, startIn.get(range.partition) ?? 0) }))
    .filter(({ from, end }) => from < end);
}
