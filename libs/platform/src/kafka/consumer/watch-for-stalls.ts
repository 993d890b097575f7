import type { Logger } from '../../service/logger.ts';
import type { Position } from '../positions/ask-positions.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { Reader } from './read-as-member.ts';
import { createStallClock, type Reading, type StallClock } from './stall-clock.ts';

export interface StallWatchDeps {
  topics: readonly string[];
  /** How long a partition may stand still, in milliseconds. */
  stallMs: number;
  isJudgeable: () => boolean;
  askPositions: () => Promise<readonly Position[]>;
  reader: () => Pick<Reader, 'assigned' | 'isWaiting' | 'fetches'>;
  /** Gives the consumer up and begins anew. */
  restart: () => Promise<void>;
  nowMs: () => number;
  monotonicMs: () => number;
  logger: Logger;
  metrics: KafkaMetrics;
}

export interface StallWatch {
  start: () => void;
  stop: () => void;
  /** One look; `start` makes one every ten seconds. */
  tick: () => Promise<void>;
  isAlive: () => boolean;
}

interface Watching extends StallWatchDeps {
  clock: StallClock;
  state: {
    isAlive: boolean;
    isStopped: boolean;
    lastLookMs: number | null;
    silentMs: number;
    fetches: number;
    /** Why the consumer was restarted: where its partitions stood then, or that it did not fetch. */
    tried: readonly Reading[];
    hasTriedLoop: boolean;
  };
}

/** With 120 s to stand still and two looks of delay, a consumer begins anew after 140 s at most. */
const MAX_LOOK_EVERY_MS = 10_000;
/** A loop that waits for its group goes round again within a rebalance and a session: 20 s. */
const MIN_SILENCE_MS = 60_000;

/**
 * Looks after a consumer that lives on without moving. The first remedy is a new consumer; when that
 * one does not move the partition either, `isAlive` turns false for the liveness probe.
 */
export function watchForStalls(deps: StallWatchDeps): StallWatch {
  const everyMs = lookEveryMs(deps);
  const watching: Watching = {
    ...deps,
    clock: createStallClock(deps.stallMs),
    state: {
      isAlive: true,
      isStopped: false,
      lastLookMs: null,
      silentMs: 0,
      fetches: 0,
      tried: [],
      hasTriedLoop: false,
    },
  };
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    if (watching.state.isStopped) return;
    timer = setTimeout(() => void look(watching).finally(next), everyMs);
  };
  return {
    start: next,
    stop() {
      watching.state.isStopped = true;
      clearTimeout(timer);
    },
    tick: () => look(watching),
    isAlive: () => watching.state.isAlive,
  };
}

function lookEveryMs({ stallMs }: StallWatchDeps): number {
  return Math.min(MAX_LOOK_EVERY_MS, stallMs / 6);
}

async function look(watching: Watching): Promise<void> {
  const { clock, state, logger } = watching;
  const wasJudgeable = watching.isJudgeable();
  const positions = await watching.askPositions().catch((error: unknown) => {
    if (!state.isStopped) logger.warn({ err: error }, 'Kafka did not tell where the group stands');
    return null;
  });
  if (!positions || state.isStopped) {
    state.lastLookMs = null;
    return;
  }
  const countedMs = countTime(watching, wasJudgeable && watching.isJudgeable());
  const nowMs = watching.nowMs();
  const stalled = clock.look(readingsOf(watching, positions), { countedMs, nowMs });
  for (const topic of watching.topics) {
    watching.metrics.setProgress(topic, clock.movedAtMs(topic, nowMs));
  }
  const isSilent = listenToLoop(watching, countedMs);
  if (state.isAlive && (stalled.length > 0 || isSilent)) await remedy(watching, stalled, isSilent);
}

/** Time counts between two looks that could both judge; a process that slept was no stall. */
function countTime(watching: Watching, isJudgeable: boolean): number {
  const { state } = watching;
  const sinceMs = state.lastLookMs;
  const nowMs = watching.monotonicMs();
  state.lastLookMs = isJudgeable ? nowMs : null;
  if (!isJudgeable || sinceMs === null) return 0;
  return Math.min(nowMs - sinceMs, 3 * lookEveryMs(watching));
}

function readingsOf(watching: Watching, positions: readonly Position[]): Reading[] {
  const reader = watching.reader();
  const assigned = new Set(reader.assigned().map(keyOf));
  const owned = positions.filter((position) => assigned.has(keyOf(position)));
  return owned.map(({ topic, partition, committed, lag }) => {
    watching.metrics.setLag(topic, partition, lag);
    const isWaiting = reader.isWaiting({ topic, partition });
    return { topic, partition, position: committed, lag, isWaiting };
  });
}

/** A loop that hangs sends no heartbeats: others take its partitions, and none of them stands still. */
function listenToLoop({ state, reader, stallMs }: Watching, countedMs: number): boolean {
  const fetches = reader().fetches();
  state.silentMs = fetches === state.fetches ? state.silentMs + countedMs : 0;
  if (fetches !== state.fetches) state.hasTriedLoop = false;
  state.fetches = fetches;
  return state.silentMs >= Math.max(stallMs, MIN_SILENCE_MS);
}

async function remedy(
  { clock, state, logger, metrics, restart }: Watching,
  stalled: readonly Reading[],
  isSilent: boolean,
): Promise<void> {
  const where = stalled.map(({ topic, partition, lag }) => ({ topic, partition, lag }));
  if ((isSilent && state.hasTriedLoop) || stalled.some((each) => isAmong(state.tried, each))) {
    state.isAlive = false;
    logger.error(
      { stalled: where, isSilent },
      'a new consumer stalled too, only a restart is left',
    );
    return;
  }
  state.tried = stalled;
  state.hasTriedLoop = isSilent;
  logger.error({ stalled: where, isSilent }, 'the consumer stalled, beginning anew');
  metrics.restarts.inc();
  await restart();
  clock.restart();
  Object.assign(state, { silentMs: 0, fetches: 0, lastLookMs: null });
}

function isAmong(tried: readonly Reading[], { topic, partition, position }: Reading): boolean {
  return tried.some(
    (each) => each.topic === topic && each.partition === partition && each.position === position,
  );
}

function keyOf({ topic, partition }: { topic: string; partition: number }): string {
  return `${topic}/${partition}`;
}
