import { createLoop } from '../../async/loop.ts';
import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { GroupPosition } from '../offsets/group-positions.ts';
import { keyOf, type TopicPartition } from '../record-log.ts';
import type { GroupConsumer } from './group-consumer.ts';

interface StallWatchDeps {
  topics: readonly string[];
  /** How long a partition with records to read may go without a commit before it counts as stalled, in milliseconds. */
  stallMs: number;
  areStoresUp: () => boolean;
  readPositions: () => Promise<readonly GroupPosition[]>;
  consumer: () => Pick<GroupConsumer, 'assigned' | 'isWaiting' | 'fetches'>;
  replaceConsumer: () => Promise<void>;
  nowMs: () => number;
  monotonicMs: () => number;
  logger: Logger;
  metrics: KafkaMetrics;
}

export interface StallWatch {
  start: () => void;
  /** Begins no further check. Does not wait for the one that runs: Kafka may take 20 s to answer it. */
  stop: () => void;
  /** One check; `start` makes one every ten seconds. */
  tick: () => Promise<void>;
  isAlive: () => boolean;
}

interface Watching extends StallWatchDeps {
  clock: StallClock;
  state: {
    isAlive: boolean;
    isStopped: boolean;
    lastCheckMs: number | null;
    silentMs: number;
    fetches: number;
    /** Where the stalled partitions stood when the consumer was last replaced. */
    stalledBefore: readonly PartitionReading[];
    /** True when the consumer was last replaced because its fetch loop hung. */
    wasSilentBefore: boolean;
  };
}

/** With 110 s without a commit and two checks of delay, a consumer is replaced after 130 s at most. */
const MAX_CHECK_EVERY_MS = 10_000;
/** A loop that waits for its group makes a round again within a rebalance and a session: 20 s. */
const MIN_SILENCE_MS = 60_000;

/**
 * Watches for a consumer that lives on without moving. The first remedy is a new consumer; when that
 * one does not move the partition either, `isAlive` turns false for the liveness probe.
 */
export function createStallWatch(deps: StallWatchDeps): StallWatch {
  const watching: Watching = {
    ...deps,
    clock: createStallClock(deps.stallMs),
    state: {
      isAlive: true,
      isStopped: false,
      lastCheckMs: null,
      silentMs: 0,
      fetches: 0,
      stalledBefore: [],
      wasSilentBefore: false,
    },
  };
  const loop = createLoop({
    name: 'stall watch',
    everyMs: checkEveryMs(deps),
    run: () => check(watching),
    logger: deps.logger,
  });
  return {
    start: loop.start,
    stop() {
      watching.state.isStopped = true;
      void loop.stop();
    },
    tick: loop.tick,
    isAlive: () => watching.state.isAlive,
  };
}

function checkEveryMs({ stallMs }: StallWatchDeps): number {
  return Math.min(MAX_CHECK_EVERY_MS, stallMs / 6);
}

async function check(watching: Watching): Promise<void> {
  const { clock, state, logger } = watching;
  const wereStoresUp = watching.areStoresUp();
  const positions = await watching.readPositions().catch((error: unknown) => {
    if (!state.isStopped) logger.warn({ err: error }, 'cannot read the positions of the group');
    return null;
  });
  if (!positions || state.isStopped) {
    state.lastCheckMs = null;
    return;
  }
  const countedMs = countTime(watching, wereStoresUp && watching.areStoresUp());
  const nowMs = watching.nowMs();
  const stalled = clock.add(readingsOf(watching, positions), { countedMs, nowMs });
  for (const topic of watching.topics) {
    watching.metrics.setProgress(topic, clock.movedAtMs(topic, nowMs));
  }
  const isSilent = countSilence(watching, countedMs);
  if (state.isAlive && (stalled.length > 0 || isSilent)) await remedy(watching, stalled, isSilent);
}

/** Time counts between two checks that both found the stores up; a process that slept did not stall. */
function countTime(watching: Watching, areStoresUp: boolean): number {
  const { state } = watching;
  const sinceMs = state.lastCheckMs;
  const nowMs = watching.monotonicMs();
  state.lastCheckMs = areStoresUp ? nowMs : null;
  if (!areStoresUp || sinceMs === null) return 0;
  return Math.min(nowMs - sinceMs, 3 * checkEveryMs(watching));
}

function readingsOf(watching: Watching, positions: readonly GroupPosition[]): PartitionReading[] {
  const consumer = watching.consumer();
  const assigned = new Set(consumer.assigned().map(keyOf));
  const owned = positions.filter((position) => assigned.has(keyOf(position)));
  return owned.map(({ topic, partition, committed, lag }) => {
    watching.metrics.setLag(topic, partition, lag);
    const isWaiting = consumer.isWaiting({ topic, partition });
    return { topic, partition, position: committed, lag, isWaiting };
  });
}

/**
 * Returns true when the fetch loop has hung for too long. It sends no heartbeats then: others take its
 * partitions, and none of them stalls.
 */
function countSilence({ state, consumer, stallMs }: Watching, countedMs: number): boolean {
  const fetches = consumer().fetches();
  state.silentMs = fetches === state.fetches ? state.silentMs + countedMs : 0;
  if (fetches !== state.fetches) state.wasSilentBefore = false;
  state.fetches = fetches;
  return state.silentMs >= Math.max(stallMs, MIN_SILENCE_MS);
}

async function remedy(
  { clock, state, logger, metrics, replaceConsumer }: Watching,
  stalled: readonly PartitionReading[],
  isSilent: boolean,
): Promise<void> {
  const where = stalled.map(({ topic, partition, lag }) => ({ topic, partition, lag }));
  const isAgain = stalled.some((each) => isAmong(state.stalledBefore, each));
  if ((isSilent && state.wasSilentBefore) || isAgain) {
    state.isAlive = false;
    logger.error(
      { stalled: where, isSilent },
      'the new consumer stalled too, the process must be restarted',
    );
    return;
  }
  state.stalledBefore = stalled;
  state.wasSilentBefore = isSilent;
  logger.error({ stalled: where, isSilent }, 'the consumer stalled, replacing it');
  metrics.restarts.inc();
  await replaceConsumer();
  clock.restart();
  Object.assign(state, { silentMs: 0, fetches: 0, lastCheckMs: null });
}

function isAmong(
  before: readonly PartitionReading[],
  { topic, partition, position }: PartitionReading,
): boolean {
  return before.some(
    (each) => each.topic === topic && each.partition === partition && each.position === position,
  );
}

/** Where a partition stood when the broker was asked. */
export interface PartitionReading extends TopicPartition {
  /** The committed offset; -1 before the first commit. */
  position: number;
  /** Records beyond it. */
  lag: number;
  /** True where nothing can move now, see GroupConsumer.isWaiting. */
  isWaiting: boolean;
}

interface Check {
  /** How much of the time since the check before counts, in milliseconds. */
  countedMs: number;
  /** The wall clock. */
  nowMs: number;
}

export interface StallClock {
  /** Adds what a check has read. Returns the partitions that have stalled. */
  add: (readings: readonly PartitionReading[], check: Check) => PartitionReading[];
  /** When the partition of the topic that has waited longest last moved, by the wall clock. */
  movedAtMs: (topic: string, nowMs: number) => number;
  /** The consumer was replaced: every partition gets its whole time again. */
  restart: () => void;
}

interface Standing {
  reading: PartitionReading;
  stillMs: number;
  movedAtMs: number;
}

/** Measures for how long each partition has not moved although it has records to read. */
export function createStallClock(stallMs: number): StallClock {
  let standing = new Map<string, Standing>();
  return {
    add(readings, check) {
      standing = new Map(
        readings.map((reading) => {
          const key = keyOf(reading);
          return [key, next(standing.get(key), reading, check)];
        }),
      );
      return [...standing.values()]
        .filter(({ stillMs }) => stillMs >= stallMs)
        .map(({ reading }) => reading);
    },
    movedAtMs: (topic, nowMs) =>
      Math.min(
        nowMs,
        ...[...standing.values()]
          .filter(({ reading }) => reading.topic === topic)
          .map(({ movedAtMs }) => movedAtMs),
      ),
    restart() {
      for (const each of standing.values()) each.stillMs = 0;
    },
  };
}

function next(
  before: Standing | undefined,
  reading: PartitionReading,
  { countedMs, nowMs }: Check,
): Standing {
  const hasMoved = before?.reading.position !== reading.position;
  if (!before || hasMoved || reading.lag === 0 || reading.isWaiting) {
    return { reading, stillMs: 0, movedAtMs: nowMs };
  }
  return { reading, stillMs: before.stillMs + countedMs, movedAtMs: before.movedAtMs };
}
