import { keyOf, type TopicPartition } from '../topic-partition.ts';
import type { ConnectionPool, Consumer } from '@platformatic/kafka';
import { createKeepTrying, StoppedError } from '../../async/keep-trying.ts';
import { pause } from '../../async/pause.ts';
import type { Logger } from '../../service/logger.ts';
import type { GroupEvents } from '../consumer/group-client.ts';
import { commitInGeneration, type Generation } from './commit-in-generation.ts';
import { errorText } from './error-text.ts';
import {
  answersIn,
  fetchRequest,
  groupByLeader,
  partitionCount,
  responseOf,
  topicNames,
} from './fetch-request.ts';
import { recordsFrom, type PartitionAnswer } from './fetched-records.ts';
import { firstOffsets, startPositions, type Positions } from './start-positions.ts';

export interface FetchLoopDeps {
  consumer: Consumer;
  /** Its own connections: a fetch that waits for records blocks every later request on its connection. */
  connections: ConnectionPool;
  maxWaitMs: number;
  events: GroupEvents;
  isPaused: (tp: TopicPartition) => boolean;
  /** False while the broker has not confirmed for some time that this is a member of the group. */
  isConfirmed: () => boolean;
  /** Called when a topic has partitions that it did not have when the group assigned them. */
  onPartitionsAdded: () => void;
  logger: Logger;
}

/** Reads the partitions that one generation of the group assigned to this member. */
export interface FetchLoop {
  /** Hands over nothing more. Resolves when no fetch runs. */
  stop: () => Promise<void>;
}

interface Loop extends FetchLoopDeps {
  generation: Generation;
  topicPartitions: readonly TopicPartition[];
  positions: Positions;
  /** Partitions of all topics together; 0 while not known. */
  partitionCount: number;
  signal: AbortSignal;
  /** Broker → the fetch that runs. */
  fetches: Map<number, Promise<void>>;
}

/** Error code of the Kafka protocol: the partition has no record at this offset any more, or not yet. */
const OFFSET_OUT_OF_RANGE = 1;
const FAILURE_WAIT_MS = 500;

/**
 * Reads from the commits of the group, one fetch at a time from each broker. Starts when `before`
 * resolves, the end of the previous loop: two fetches at once would share one session of the broker.
 */
export function startFetchLoop(
  deps: FetchLoopDeps,
  generation: Generation,
  topicPartitions: readonly TopicPartition[],
  before: Promise<void> = Promise.resolve(),
): FetchLoop {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop: Loop = {
    ...deps,
    generation,
    topicPartitions,
    positions: new Map(),
    // Read now, so that it is the number that the leader of the group has assigned.
    partitionCount: partitionCount(deps.consumer),
    signal,
    fetches: new Map(),
  };
  const ended = before
    .then(() => run(loop))
    .catch((error: unknown) => {
      if (signal.aborted || error instanceof StoppedError) return;
      deps.logger.error({ err: error }, 'the fetch loop ended');
    });
  return {
    stop() {
      stopping.abort();
      return ended;
    },
  };
}

async function run(loop: Loop): Promise<void> {
  const { consumer, topicPartitions, signal, fetches, logger } = loop;
  const describeError = (error: unknown): object => ({ error: errorText(error) });
  const keepTrying = createKeepTrying({ logger, signal, describeError });
  loop.positions = await keepTrying('read the positions of the group', () =>
    startPositions(consumer, topicPartitions),
  );
  while (!signal.aborted) await runRound(loop);
  await Promise.all(fetches.values());
}

async function runRound(loop: Loop): Promise<void> {
  const { consumer, events, fetches, maxWaitMs, signal } = loop;
  events.onFetch();
  followPartitionCount(loop);
  for (const [node, topicPartitions] of groupByLeader(consumer, readable(loop))) {
    if (fetches.has(node)) continue;
    const done = fetchFrom(loop, node, topicPartitions).finally(() => fetches.delete(node));
    fetches.set(node, done);
  }
  if (fetches.size > 0) {
    await Promise.race(fetches.values());
    return;
  }
  await pause(maxWaitMs, signal);
  // Without a fetch nobody refreshes the leaders of partitions; this asks a broker every few seconds.
  await consumer.metadata({ topics: consumer.topics.current }).catch(() => undefined);
}

/** The client refreshes its metadata every five seconds, and does not act on added partitions. */
function followPartitionCount(loop: Loop): void {
  const count = partitionCount(loop.consumer);
  if (count === 0) return;
  const before = loop.partitionCount;
  loop.partitionCount = count;
  if (before > 0 && count > before) loop.onPartitionsAdded();
}

function readable({ topicPartitions, positions, isPaused }: Loop): TopicPartition[] {
  return topicPartitions.filter((tp) => positions.has(keyOf(tp)) && !isPaused(tp));
}

async function fetchFrom(
  loop: Loop,
  node: number,
  topicPartitions: readonly TopicPartition[],
): Promise<void> {
  const { consumer, positions, connections, maxWaitMs, signal, logger } = loop;
  if (!loop.isConfirmed()) {
    await pause(maxWaitMs, signal);
    return;
  }
  // Before the fetch: with some errors the client drops its metadata.
  const names = topicNames(consumer);
  try {
    const request = fetchRequest(consumer, topicPartitions, positions);
    const settings = { node, connectionPool: connections, maxWaitTime: maxWaitMs };
    const response = await consumer.fetch({ ...settings, ...request });
    for (const [tp, answer] of answersIn(response, names)) handOver(loop, tp, answer);
  } catch (error) {
    if (signal.aborted) return;
    logger.warn({ error: errorText(error) }, 'a fetch failed, trying again');
    const response = responseOf(error);
    if (response) await handOverGoodPartitions(loop, answersIn(response, names));
    consumer.clearMetadata();
    await pause(FAILURE_WAIT_MS, signal);
  }
}

/** An error of one partition stops no other. One that lost its records is read from the first that it has. */
async function handOverGoodPartitions(
  loop: Loop,
  answers: readonly [TopicPartition, PartitionAnswer][],
): Promise<void> {
  const { consumer, positions } = loop;
  for (const [tp, answer] of answers) {
    if (answer.errorCode === 0) handOver(loop, tp, answer);
  }
  const lost = answers.filter(([, { errorCode }]) => errorCode === OFFSET_OUT_OF_RANGE);
  const topicPartitions = lost.map(([tp]) => tp);
  const first = await firstOffsets(consumer, topicPartitions).catch(
    () => new Map<string, number>(),
  );
  for (const [key, offset] of first) positions.set(key, offset);
}

function handOver(loop: Loop, tp: TopicPartition, answer: PartitionAnswer): void {
  const { consumer, events, positions, generation, isPaused, signal } = loop;
  const key = keyOf(tp);
  const position = positions.get(key);
  if (position === undefined || signal.aborted || isPaused(tp)) return;
  // This process may have been suspended, or cut off, and others have done meanwhile what it has read.
  if (!loop.isConfirmed()) return;
  // The group may have changed meanwhile, before the client reports it.
  if (consumer.memberId !== generation.memberId) return;
  if (consumer.generationId !== generation.generationId) return;
  const { messages, next } = recordsFrom(answer, position);
  const last = messages.at(-1)?.offset;
  if (last === undefined) {
    positions.set(key, next);
    return;
  }
  const batch = {
    batch: { ...tp, highWatermark: String(answer.highWatermark), messages },
    resolveOffset(offset: string) {
      positions.set(key, offset === last ? next : Number(offset) + 1);
    },
  };
  events.onBatch(batch, (commits) => commitInGeneration(consumer, generation, commits));
}
