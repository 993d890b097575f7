import { createRequire } from 'node:module';
import { Cursor } from '../fetch/cursor.ts';
import {
  type AbortedTransaction,
  createWork,
  type DecodedRecord,
  decodeRecordSet,
  type RecordSet,
  roomFor,
} from '../fetch/record-batches.ts';

/** The part of kafkajs's fetch request that is used here. */
export interface FetchProtocol {
  protocol: (options: { version: number }) => (request: FetchRequest) => FetchCall;
}

interface FetchRequest {
  topics: readonly RequestedTopic[];
}

interface RequestedTopic {
  topic: string;
  partitions: readonly { partition: number; fetchOffset: string }[];
}

interface FetchCall {
  response: {
    decode: (bytes: Buffer) => Promise<unknown>;
    parse: (decoded: never) => Promise<unknown>;
  };
}

const require = createRequire(import.meta.url);

/**
 * Kafkajs 2.2.4 decodes records as they come: 4,000 headers of one record, 24 KB, block the process for seconds
 * (quadratic), a batch becomes any number of records at once, and one that cannot be unpacked ends the consumer with all
 * of its topics. It reads gzip only. It takes a key of four zero bytes for the end of an aborted transaction, and so hands
 * over records of it. After the patch, `decodeRecordSet` reads what is fetched, for every consumer of this process.
 */
export function patchFetch(
  fetch: FetchProtocol = require('kafkajs/src/protocol/requests/fetch/index.js') as FetchProtocol,
): void {
  const { protocol } = fetch;
  fetch.protocol = ({ version }) => {
    const call = protocol({ version });
    if (version < FIRST_VERSION) return call;
    return (request) => {
      const made = call(request);
      const decode = (bytes: Buffer): Promise<unknown> =>
        decodeFetch(version, bytes, request.topics);
      return { ...made, response: { ...made.response, decode } };
    };
  };
}

/** Of the request, since Kafka 0.11: the first with the record batches of today. Posthorn's oldest Kafka has 11. */
const FIRST_VERSION = 4;

interface FetchedPartition {
  partition: number;
  errorCode: number;
  highWatermark: string;
  lastStableOffset: string;
  lastStartOffset: string;
  /** None: their records are left out. */
  abortedTransactions: [];
  preferredReadReplica: number;
  messages: DecodedRecord[];
}

interface FetchResponse {
  throttleTime: 0;
  clientSideThrottleTime: number;
  errorCode: number;
  sessionId: number;
  responses: { topicName: string; partitions: FetchedPartition[] }[];
}

/** Decodes a response of the versions 4 to 11, in the shape of kafkajs (KIP-74, KIP-98, KIP-227, KIP-392). */
export async function decodeFetch(
  version: number,
  bytes: Buffer,
  requested: readonly RequestedTopic[],
): Promise<FetchResponse> {
  const cursor = new Cursor(bytes);
  const clientSideThrottleTime = cursor.int32();
  const errorCode = version >= 7 ? cursor.int16() : 0;
  const sessionId = version >= 7 ? cursor.int32() : 0;
  const fetched: FetchedSet[] = [];
  const responses: FetchResponse['responses'] = [];
  for (let topics = cursor.int32(); topics > 0; topics -= 1) {
    const topicName = cursor.string();
    const offsets = offsetsOf(requested, topicName);
    const partitions: FetchedPartition[] = [];
    for (let left = cursor.int32(); left > 0; left -= 1) {
      const { partition, set } = readPartition(version, cursor, offsets);
      partitions.push(partition);
      if (set.bytes.length > 0) fetched.push({ partition, set });
    }
    responses.push({ topicName, partitions });
  }
  await decodeInTurns(fetched);
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses };
}

interface FetchedSet {
  partition: FetchedPartition;
  set: Omit<RecordSet, 'room' | 'work'>;
}

/**
 * The partition with the fewest bytes is first, so that single records of a company do not wait for the batches of another.
 * Once the work of the answer is done, the others are fetched again, but for one by chance, which has one batch decoded.
 */
async function decodeInTurns(fetched: readonly FetchedSet[]): Promise<void> {
  const work = createWork();
  const byLuck = fetched[Math.floor(Math.random() * fetched.length)];
  for (const each of fetched.toSorted((a, b) => a.set.bytes.length - b.set.bytes.length)) {
    const isLucky = each === byLuck && work.bytes <= 0;
    const room = roomFor(fetched.length);
    each.partition.messages = await decodeRecordSet({
      ...each.set,
      room,
      work: isLucky ? { bytes: 1 } : work,
    });
  }
}

function readPartition(
  version: number,
  cursor: Cursor,
  offsets: ReadonlyMap<number, number>,
): FetchedSet {
  const partition = cursor.int32();
  const errorCode = cursor.int16();
  const endOffset = cursor.int64();
  const lastStableOffset = String(cursor.int64());
  const lastStartOffset = version >= 5 ? String(cursor.int64()) : '-1';
  const aborted: AbortedTransaction[] = [];
  for (let left = cursor.int32(); left > 0; left -= 1) {
    aborted.push({ producerId: cursor.int64(), firstOffset: cursor.int64() });
  }
  const preferredReadReplica = version >= 11 ? cursor.int32() : -1;
  const length = cursor.int32();
  const bytes = length > 0 ? cursor.take(length) : Buffer.alloc(0);
  return {
    partition: {
      partition,
      errorCode,
      highWatermark: String(endOffset),
      lastStableOffset,
      lastStartOffset,
      abortedTransactions: [],
      preferredReadReplica,
      messages: [],
    },
    set: { bytes, fetchOffset: offsets.get(partition) ?? 0, endOffset, aborted },
  };
}

function offsetsOf(requested: readonly RequestedTopic[], topic: string): Map<number, number> {
  const found = requested.find((each) => each.topic === topic);
  return new Map(
    found?.partitions.map(({ partition, fetchOffset }) => [partition, Number(fetchOffset)]),
  );
}
