import type { ConnectionPool, Consumer } from '@platformatic/kafka';
import { setTimeout as wait } from 'node:timers/promises';
import { keepTrying } from '../../async/keep-trying.ts';
import type { Logger } from '../../service/logger.ts';
import type { GroupEvents } from '../consumer/group-client.ts';
import type { Place } from '../positions/pauses.ts';
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
import { firstOffsets, keyOf, startPositions, type Positions } from './start-positions.ts';

export interface FetchLoopDeps {
  consumer: Consumer;
  /** Connections of their own: a fetch that waits for records holds up what follows it on its own. */
  connections: ConnectionPool;
  maxWaitMs: number;
  events: GroupEvents;
  isPaused: (place: Place) => boolean;
  /** A topic has partitions that it did not have when the group was shared out. */
  onGrown: () => void;
  logger: Logger;
}

/** Reading of what one generation of the group gave this member. */
export interface FetchLoop {
  /** Hands over nothing more; resolves when no fetch is under way. */
  stop: () => Promise<void>;
}

interface Loop extends FetchLoopDeps {
  generation: Generation;
  places: readonly Place[];
  positions: Positions;
  /** Of all topics together; 0 while not known. */
  partitionCount: number;
  signal: AbortSignal;
  /** The fetch that is under way, by the broker. */
  fetches: Map<number, Promise<void>>;
}

/** Of the Kafka protocol: nothing is held at this offset any more, or not yet. */
const OFFSET_OUT_OF_RANGE = 1;
const FAILURE_WAIT_MS = 500;

/**
 * Reads from the commits of the group on, one fetch at a time from each broker. It begins after
 * `before`, the end of the loop before it: two fetches at once would share one session of the broker.
 */
export function startFetchLoop(
  deps: FetchLoopDeps,
  generation: Generation,
  places: readonly Place[],
  before: Promise<void> = Promise.resolve(),
): FetchLoop {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop: Loop = {
    ...deps,
    generation,
    places,
    positions: new Map(),
    // At once, so that it is what a leader has shared out.
    partitionCount: partitionCount(deps.consumer),
    signal,
    fetches: new Map(),
  };
  const ended = before
    .then(() => run(loop))
    .catch((error: unknown) => {
      if (!signal.aborted) deps.logger.error({ err: error }, 'the fetch loop ended');
    });
  return {
    stop() {
      stopping.abort();
      return ended;
    },
  };
}

async function run(loop: Loop): Promise<void> {
  const { consumer, places, signal, fetches, logger } = loop;
  const onFailure = (error: unknown): void => {
    if (signal.aborted) return;
    logger.warn({ error: errorText(error) }, 'Kafka did not tell where to read on yet');
  };
  loop.positions = await keepTrying(() => startPositions(consumer, places), { signal, onFailure });
  while (!signal.aborted) await goRound(loop);
  await Promise.all(fetches.values());
}

async function goRound(loop: Loop): Promise<void> {
  const { consumer, events, fetches, maxWaitMs, signal } = loop;
  events.onFetch();
  watchForGrowth(loop);
  for (const [node, places] of groupByLeader(consumer, readable(loop))) {
    if (fetches.has(node)) continue;
    const done = fetchFrom(loop, node, places).finally(() => fetches.delete(node));
    fetches.set(node, done);
  }
  if (fetches.size > 0) {
    await Promise.race(fetches.values());
    return;
  }
  await wait(maxWaitMs, undefined, { signal }).catch(() => undefined);
  // No fetch, no look at who leads what; this one asks a broker every few seconds.
  await consumer.metadata({ topics: consumer.topics.current }).catch(() => undefined);
}

/** The client renews what it knows of the topics every five seconds, and draws no conclusion from it. */
function watchForGrowth(loop: Loop): void {
  const count = partitionCount(loop.consumer);
  if (count === 0) return;
  const before = loop.partitionCount;
  loop.partitionCount = count;
  if (before > 0 && count > before) loop.onGrown();
}

function readable({ places, positions, isPaused }: Loop): Place[] {
  return places.filter((place) => positions.has(keyOf(place)) && !isPaused(place));
}

async function fetchFrom(loop: Loop, node: number, places: readonly Place[]): Promise<void> {
  const { consumer, positions, connections, maxWaitMs, signal, logger } = loop;
  // Before the fetch: with some refusals the client forgets what it knows of the topics.
  const names = topicNames(consumer);
  try {
    const request = fetchRequest(consumer, places, positions);
    const settings = { node, connectionPool: connections, maxWaitTime: maxWaitMs };
    const response = await consumer.fetch({ ...settings, ...request });
    for (const [place, answer] of answersIn(response, names)) handOver(loop, place, answer);
  } catch (error) {
    if (signal.aborted) return;
    logger.warn({ error: errorText(error) }, 'a fetch failed, trying again');
    const response = responseOf(error);
    if (response) await takeWhatIsGood(loop, answersIn(response, names));
    consumer.clearMetadata();
    await wait(FAILURE_WAIT_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** One partition that is refused holds up no other; one that lost its records goes on at the first it has. */
async function takeWhatIsGood(
  loop: Loop,
  answers: readonly [Place, PartitionAnswer][],
): Promise<void> {
  const { consumer, positions } = loop;
  for (const [place, answer] of answers) {
    if (answer.errorCode === 0) handOver(loop, place, answer);
  }
  const lost = answers.filter(([, { errorCode }]) => errorCode === OFFSET_OUT_OF_RANGE);
  const places = lost.map(([place]) => place);
  const first = await firstOffsets(consumer, places).catch(() => new Map<string, number>());
  for (const [key, offset] of first) positions.set(key, offset);
}

function handOver(loop: Loop, place: Place, answer: PartitionAnswer): void {
  const { consumer, events, positions, generation, isPaused, signal } = loop;
  const key = keyOf(place);
  const position = positions.get(key);
  if (position === undefined || signal.aborted || isPaused(place)) return;
  // The group may have changed meanwhile, before the client says so.
  if (consumer.memberId !== generation.memberId) return;
  if (consumer.generationId !== generation.generationId) return;
  const { messages, next } = recordsFrom(answer, position);
  const last = messages.at(-1)?.offset;
  if (last === undefined) {
    positions.set(key, next);
    return;
  }
  const batch = {
    batch: { ...place, highWatermark: String(answer.highWatermark), messages },
    resolveOffset(offset: string) {
      positions.set(key, offset === last ? next : Number(offset) + 1);
    },
  };
  events.onBatch(batch, (commits) => commitInGeneration(consumer, generation, commits));
}
