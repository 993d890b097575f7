import { setImmediate as nextTurn } from 'node:timers/promises';
import { CorruptError, Cursor } from './cursor.ts';
import { crc32c } from './crc32c.ts';
import { MAX_UNPACKED_BYTES, TooLargeError, withUnpacked } from './unpack.ts';

/** Headers of a record by name: one without a value is null, and the values of one that is repeated are a list. */
export type RecordHeaders = Record<string, Buffer | null | (Buffer | null)[]>;

/** Records that can never be read, with what a person needs to find them in their topic. */
export interface Unreadable {
  firstOffset: number;
  lastOffset: number;
  /** The stored size of all of them. */
  bytes: number;
  /** Completes "The record at 17 …" or "What is at 17 to 20 …". */
  why: string;
}

/** Describes the failure for a person, in a sentence. */
export function describeUnreadable({ firstOffset, lastOffset, bytes, why }: Unreadable): string {
  const what =
    firstOffset === lastOffset
      ? `The record at ${firstOffset}`
      : `What is at ${firstOffset} to ${lastOffset}`;
  return `${what} ${why} (${bytes} bytes).`;
}

/** A record, or a place that has none, in the shape of kafkajs. */
export interface DecodedRecord {
  offset: string;
  /** Milliseconds since 1970. */
  timestamp: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: RecordHeaders;
  /** Nothing to hand over here: the end of a transaction, an aborted one, or records that compaction has removed. */
  isControlRecord: boolean;
  /** A record with this has no key, value and headers; its `offset` is that of the last one. */
  unreadable?: Unreadable;
}

/** A transaction that was aborted, as the broker lists them for what it returns. */
export interface AbortedTransaction {
  producerId: number;
  firstOffset: number;
}

export interface RecordSet {
  /** Batches behind each other; the last one may be cut off. */
  bytes: Buffer;
  /** Records before it are passed over. */
  fetchOffset: number;
  /** The offset after the last record of the partition. */
  endOffset: number;
  aborted: readonly AbortedTransaction[];
  /** The share of the response that this partition may hand over. */
  room: Room;
  /** Shared by the partitions of an answer. */
  work: Work;
}

/** One record at least is handed over, whatever its size. */
export interface Room {
  records: number;
  bytes: number;
}

/**
 * Bytes that may be unpacked for one answer, which take about 25 ms: meanwhile nothing of it is handed over, and no heartbeat is
 * sent. One batch is unpacked whole, however large it is.
 */
export interface Work {
  bytes: number;
}

export const createWork = (): Work => ({ bytes: MAX_WORK_BYTES });

/**
 * Returns the room of each of so many partitions of one answer. All together may hand over so many records, or as many
 * bytes as kafkajs fetches at once. The others stay packed and are fetched again: a quarter of a megabyte of gzip may be
 * 180,000 records, which take 46 MB as objects.
 */
export function roomFor(partitions: number): Room {
  return {
    records: Math.ceil(Math.min(MAX_RECORDS, MAX_ANSWER_RECORDS / partitions)),
    bytes: Math.ceil(Math.min(MAX_BYTES, MAX_ANSWER_BYTES / partitions)),
  };
}

/** A record may have so many headers and so many bytes of them: names and values. */
export const MAX_HEADERS = 100;
export const MAX_HEADER_BYTES = 65_536;
/** The bound of one partition, and of all partitions of a response. */
const MAX_RECORDS = 2_000;
const MAX_BYTES = 2_097_152;
const MAX_ANSWER_RECORDS = 20_000;
const MAX_ANSWER_BYTES = 10_485_760;
const MAX_WORK_BYTES = 2_097_152;
/** Eight times of what a message may have. A larger one is not copied. */
const MAX_RECORD_BYTES = 2_097_152;
/**
 * A batch with more records than this must have 32 bytes for each, unpacked: a record that can be a message has 10 at
 * least, and each of the others would be a rejected one.
 */
const UNCHECKED_RECORDS = 10_000;
const MIN_RECORD_BYTES = 32;
/** Records that are passed over, or bytes of a checksum, that take a few milliseconds. */
const TURN_RECORDS = 20_000;
/** The bytes of records in a turn: with as many headers as they may have, 50,000 headers. */
const TURN_RECORD_BYTES = 262_144;
const TURN_BYTES = 4_194_304;

/** The first offset, the length of what follows, and in it the epoch of the leader and the version. */
const PREFIX_BYTES = 12;
const VERSION_AT = 16;
const VERSION = 2;
/** The header reaches from the first offset to the number of records (KIP-98). */
const HEADER_BYTES = 61;
const CHECKED_FROM = 21;
/** The bits of the codec in the attributes, the first field behind the checksum. */
const CODEC = 7;

/**
 * Returns the records of a record set, as many as `room` and `work` allow, which it charges; those of aborted transactions are
 * left out. What cannot be read is an Unreadable in its place, and what follows is read. Never throws for any bytes, and
 * yields to the event loop after some milliseconds. Versions before Kafka 0.11 (2017) are not read.
 */
export async function decodeRecordSet(set: RecordSet): Promise<DecodedRecord[]> {
  const { bytes, fetchOffset, endOffset, room, work } = set;
  const records: DecodedRecord[] = [];
  const isAborted = createAbortedFilter(set.aborted);
  for (let at = 0; bytes.length - at > VERSION_AT && hasRoom(room);) {
    if (work.bytes <= 0 && isPacked(bytes, at)) break;
    const firstOffset = new Cursor(bytes.subarray(at)).int64();
    const end = at + PREFIX_BYTES + bytes.readInt32BE(at + 8);
    if (end <= at + VERSION_AT) {
      records.push(
        unreadable(
          {
            firstOffset: fetchOffset,
            lastOffset: fetchOffset,
            bytes: bytes.length - at,
            why: 'has no length',
          },
          -1,
        ),
      );
      break;
    }
    // A broker cuts the last one off.
    if (end > bytes.length) break;
    const hasNext = bytes.length - end >= 8;
    const nextOffset = hasNext ? new Cursor(bytes.subarray(end)).int64() : endOffset;
    const batch = { firstOffset, nextOffset, bytes: bytes.subarray(at, end) };
    const decoded = await decodeBatch(batch, { fetchOffset, room, work, isAborted });
    for (const each of decoded) records.push(each);
    at = end;
  }
  return records;
}

/** Only what is unpacked is work: plain records do not wait for the packed ones of others. */
function isPacked(bytes: Buffer, at: number): boolean {
  const attributesAt = at + CHECKED_FROM;
  return (
    bytes[at + VERSION_AT] === VERSION &&
    attributesAt + 2 <= bytes.length &&
    (bytes.readInt16BE(attributesAt) & CODEC) !== 0
  );
}

const hasRoom = ({ records, bytes }: Room): boolean => records > 0 && bytes > 0;

interface Batch {
  firstOffset: number;
  /** Where the next one begins, or the partition ends. */
  nextOffset: number;
  bytes: Buffer;
}

interface BatchHead {
  firstOffset: number;
  lastOffset: number;
  codec: number;
  isTransactional: boolean;
  isControl: boolean;
  /** Set by the broker for all records; null where each has its own. */
  appendedAtMs: number | null;
  firstTimestampMs: number;
  producerId: number;
  count: number;
}

interface BatchContext {
  fetchOffset: number;
  room: Room;
  work: Work;
  isAborted: IsAborted;
}

async function decodeBatch(batch: Batch, context: BatchContext): Promise<DecodedRecord[]> {
  const { firstOffset, nextOffset, bytes } = batch;
  const { fetchOffset, room, work, isAborted } = context;
  const version = bytes[VERSION_AT] ?? 0;
  if (version !== VERSION || bytes.length < HEADER_BYTES) {
    if (firstOffset < fetchOffset) return [];
    const why = `has the message format ${version}, which producers before Kafka 0.11 write`;
    return [unreadable({ firstOffset, lastOffset: firstOffset, bytes: bytes.length, why }, -1)];
  }
  const head = readHead(batch);
  const refused = (lastOffset: number, why: string): DecodedRecord[] => {
    room.records -= 1;
    const found = { firstOffset: Math.max(firstOffset, fetchOffset), lastOffset };
    return [unreadable({ ...found, bytes: bytes.length, why }, head.firstTimestampMs)];
  };
  const { lastOffset } = head;
  if (lastOffset < fetchOffset) return [];
  const packed = bytes.subarray(HEADER_BYTES);
  if (isAborted(head, packed)) return [nothingAt(lastOffset)];
  if (!(await isWhole(bytes))) {
    // The last offset is among what is wrong.
    const last = Math.max(firstOffset, fetchOffset, Math.min(lastOffset, nextOffset - 1));
    return refused(last, 'has a wrong checksum');
  }
  try {
    return await withUnpacked(head.codec, packed, (unpacked) => {
      if (head.codec !== 0) work.bytes -= unpacked.length;
      if (head.count <= Math.max(UNCHECKED_RECORDS, unpacked.length / MIN_RECORD_BYTES)) {
        return decodeRecords(head, unpacked, context);
      }
      const what = `${head.count} records in ${unpacked.length} bytes`;
      const why = `is one batch of ${what}, fewer than ${MIN_RECORD_BYTES} for each`;
      return Promise.resolve(refused(lastOffset, why));
    });
  } catch (error) {
    if (error instanceof CorruptError || error instanceof TooLargeError) {
      if (error instanceof TooLargeError) work.bytes -= MAX_UNPACKED_BYTES;
      return refused(lastOffset, `cannot be unpacked: ${error.message}`);
    }
    throw error;
  }
}

function readHead({ firstOffset, bytes }: Batch): BatchHead {
  const cursor = new Cursor(bytes);
  cursor.skip(CHECKED_FROM);
  const attributes = cursor.int16();
  const lastOffsetDelta = Math.max(0, cursor.int32());
  const firstTimestampMs = cursor.int64();
  const maxTimestampMs = cursor.int64();
  const producerId = cursor.int64();
  // The epoch of the producer, and its first sequence number.
  cursor.skip(6);
  return {
    firstOffset,
    lastOffset: firstOffset + lastOffsetDelta,
    codec: attributes & CODEC,
    appendedAtMs: (attributes & 8) === 0 ? null : maxTimestampMs,
    isTransactional: (attributes & 16) !== 0,
    isControl: (attributes & 32) !== 0,
    firstTimestampMs,
    producerId,
    count: cursor.int32(),
  };
}

async function isWhole(bytes: Buffer): Promise<boolean> {
  let sum = 0;
  for (let at = CHECKED_FROM; at < bytes.length; at += TURN_BYTES) {
    if (at > CHECKED_FROM) await nextTurn();
    sum = crc32c(bytes.subarray(at, at + TURN_BYTES), sum);
  }
  return sum === bytes.readUInt32BE(CHECKED_FROM - 4);
}

/** Returns true for a batch that hands nothing over. Called for each in the order of the log. */
type IsAborted = (
  head: Pick<BatchHead, 'isControl' | 'isTransactional' | 'producerId' | 'lastOffset'>,
  packed: Buffer,
) => boolean;

/**
 * Knows which producers have an aborted transaction open, as the consumer of Kafka itself does: each transaction of the
 * list begins where its first offset is reached, and ends with the mark of its producer. Keys of records say nothing.
 */
function createAbortedFilter(listed: readonly AbortedTransaction[]): IsAborted {
  const coming = listed.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<number>();
  let next = 0;
  return ({ isControl, isTransactional, producerId, lastOffset }, packed) => {
    for (; next < coming.length; next += 1) {
      const begun = coming[next];
      if (!begun || begun.firstOffset > lastOffset) break;
      open.add(begun.producerId);
    }
    if (!isControl) return isTransactional && open.has(producerId);
    if (isAbortMark(packed)) open.delete(producerId);
    return true;
  };
}

const ABORT = 0;

/** The key of the only record has a version and a type, of 16 bits each. */
function isAbortMark(packed: Buffer): boolean {
  try {
    const cursor = new Cursor(packed);
    cursor.varint();
    cursor.int8();
    cursor.varint();
    cursor.varint();
    const key = cursor.varintBytes();
    return key !== null && key.length >= 4 && key.readInt16BE(2) === ABORT;
  } catch {
    return false;
  }
}

async function decodeRecords(
  head: BatchHead,
  unpacked: Buffer,
  { fetchOffset, room }: BatchContext,
): Promise<DecodedRecord[]> {
  const { firstOffset, lastOffset, count } = head;
  const cursor = new Cursor(unpacked);
  const records: DecodedRecord[] = [];
  let nextOffset = firstOffset;
  let turnBytes = 0;
  for (let index = 0; index < count; index += 1) {
    if (!hasRoom(room)) return records;
    if (index % TURN_RECORDS === TURN_RECORDS - 1 || turnBytes > TURN_RECORD_BYTES) {
      turnBytes = 0;
      await nextTurn();
    }
    let bytes;
    try {
      bytes = cursor.take(cursor.varint());
    } catch {
      const why = `is where ${count - index} of the ${count} records of a batch are missing`;
      const missing = { firstOffset: Math.max(nextOffset, fetchOffset), lastOffset, bytes: 0, why };
      records.push(unreadable(missing, head.firstTimestampMs));
      return records;
    }
    const record = decodeRecord(head, bytes, { nextOffset, fetchOffset });
    nextOffset = Math.max(nextOffset, record.offset) + 1;
    if (!record.decoded) continue;
    records.push(record.decoded);
    room.records -= 1;
    if (!record.decoded.unreadable) room.bytes -= bytes.length;
    turnBytes += bytes.length;
  }
  // Compaction may have removed the last ones, and a batch that has no records keeps its place.
  if (nextOffset <= lastOffset) records.push(nothingAt(lastOffset));
  return records;
}

interface RecordContext {
  /** The offset of the record before, plus one. */
  nextOffset: number;
  fetchOffset: number;
}

/** `decoded` is null for a record before the fetch offset. */
function decodeRecord(
  head: BatchHead,
  bytes: Buffer,
  { nextOffset, fetchOffset }: RecordContext,
): { offset: number; decoded: DecodedRecord | null } {
  let offset = nextOffset;
  try {
    const begin = new Cursor(bytes);
    begin.int8();
    const timestampMs = head.firstTimestampMs + begin.varint();
    offset = head.firstOffset + begin.varint();
    if (offset > head.lastOffset || offset < nextOffset) {
      throw new CorruptError('has an offset that is not behind the last one');
    }
    if (offset < fetchOffset) return { offset, decoded: null };
    if (bytes.length > MAX_RECORD_BYTES) throw new CorruptError('is larger than 2 MiB');
    // A copy: a record in flight would keep the whole answer, or all that was unpacked.
    const cursor = new Cursor(Buffer.from(bytes));
    cursor.skip(begin.at());
    const key = cursor.varintBytes();
    const value = cursor.varintBytes();
    const headers = readHeaders(cursor);
    const timestamp = String(head.appendedAtMs ?? timestampMs);
    const found = { offset: String(offset), timestamp, key, value, headers };
    return { offset, decoded: { ...found, isControlRecord: false } };
  } catch (error) {
    if (!(error instanceof CorruptError)) throw error;
    const place = Math.min(Math.max(offset, nextOffset), head.lastOffset);
    if (place < fetchOffset) return { offset: place, decoded: null };
    const unread = {
      firstOffset: place,
      lastOffset: place,
      bytes: bytes.length,
      why: error.message,
    };
    return { offset: place, decoded: unreadable(unread, head.firstTimestampMs) };
  }
}

function readHeaders(cursor: Cursor): RecordHeaders {
  const count = cursor.varint();
  if (count > MAX_HEADERS) throw new CorruptError(`has ${count} headers, more than ${MAX_HEADERS}`);
  // A header may have a name that every object has, such as `constructor`.
  const headers = Object.create(null) as RecordHeaders;
  const before = cursor.left();
  for (let left = count; left > 0; left -= 1) {
    const name = String(cursor.varintBytes() ?? '');
    const value = cursor.varintBytes();
    if (before - cursor.left() > MAX_HEADER_BYTES) {
      throw new CorruptError(`has more than ${MAX_HEADER_BYTES} bytes of headers`);
    }
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else if (Array.isArray(known)) known.push(value);
    else headers[name] = [known, value];
  }
  return headers;
}

function nothingAt(offset: number): DecodedRecord {
  const nothing = { timestamp: '0', key: null, value: null, headers: {} };
  return { offset: String(offset), ...nothing, isControlRecord: true };
}

/** `timestampMs` is that of its batch, or −1. */
function unreadable(what: Unreadable, timestampMs: number): DecodedRecord {
  const timestamp = String(timestampMs < 0 ? Date.now() : timestampMs);
  return { ...nothingAt(what.lastOffset), timestamp, isControlRecord: false, unreadable: what };
}
