import { createLoop } from '../../async/loop.ts';
import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { GroupPosition } from '../offsets/group-positions.ts';
import { keyOf, type TopicPartition } from '../record-log.ts';

interface StallWatchDeps {
  topics: readonly string[];
  /** How long a partition with records to read may go without a commit before it counts as stalled, in milliseconds. */
  stallMs: number;
  areStoresUp: () => boolean;
  readPositions: () => Promise<readonly GroupPosition[]>;
  consumer: () => WatchedConsumer;
  replaceConsumer: () => Promise<void>;
  nowMs: () => number;
  monotonicMs: () => number;
  logger: Logger;
  metrics: Pick<KafkaMetrics, 'restarts' | 'setLag' | 'setProgress'>;
}

/** The part of GroupConsumer that is watched. */
interface WatchedConsumer {
  assigned: () => readonly TopicPartition[];
  isWaiting: (partition: TopicPartition) => boolean;
  fetches: () => number;
}

/** A partition with its position at the last check. */
interface Standing {
  position: GroupPosition;
  /** The time for which it has not moved although it has records to read. */
  stillMs: number;
  /** When it last moved, by the wall clock. */
  movedAtMs: number;
}

/** With 110 s without a commit and two checks of delay, a consumer is replaced after 130 s at most. */
const MAX_CHECK_EVERY_MS = 10_000;
/** A fetch loop that waits for its group makes an iteration again within a rebalance and a session: 20 s. */
const MIN_SILENCE_MS = 60_000;

/**
 * Watches for a consumer that lives on without moving. The first remedy is a new consumer; when that
 * one does not move the partition either, `isAlive` turns false for the liveness probe.
 */
export class StallWatch {
  readonly #deps: StallWatchDeps;
  readonly #everyMs: number;
  readonly #loop;
  #standing = new Map<string, Standing>();
  #isAlive = true;
  #isStopped = false;
  /** By the monotonic clock; null when the time until the next check does not count. */
  #lastCheckMs: number | null = null;
  /** The time for which the fetch loop has made no iteration. */
  #silentMs = 0;
  #fetches = 0;
  /** The partitions that had stalled when the consumer was last replaced. */
  #stalledBefore: readonly GroupPosition[] = [];
  /** True when the consumer was last replaced because its fetch loop hung. */
  #wasSilentBefore = false;

  constructor(deps: StallWatchDeps) {
    this.#deps = deps;
    this.#everyMs = Math.min(MAX_CHECK_EVERY_MS, deps.stallMs / 6);
    this.#loop = createLoop({
      name: 'stall watch',
      everyMs: this.#everyMs,
      run: () => this.#check(),
      logger: deps.logger,
    });
  }

  /** Makes a check every ten seconds. */
  start(): void {
    this.#loop.start();
  }

  /** Begins no further check. Does not wait for the one that runs: Kafka may take 20 s to answer it. */
  stop(): void {
    this.#isStopped = true;
    void this.#loop.stop();
  }

  /** Makes one check. */
  tick(): Promise<void> {
    return this.#loop.tick();
  }

  isAlive(): boolean {
    return this.#isAlive;
  }

  async #check(): Promise<void> {
    const { areStoresUp, readPositions, logger } = this.#deps;
    const wereStoresUp = areStoresUp();
    const positions = await readPositions().catch((error: unknown) => {
      if (!this.#isStopped) logger.warn({ err: error }, 'cannot read the positions of the group');
      return null;
    });
    if (!positions || this.#isStopped) {
      this.#lastCheckMs = null;
      return;
    }
    const countedMs = this.#countTime(wereStoresUp && areStoresUp());
    this.#measure(positions, countedMs);
    const stalled = [...this.#standing.values()]
      .filter(({ stillMs }) => stillMs >= this.#deps.stallMs)
      .map(({ position }) => position);
    const isSilent = this.#isSilent(countedMs);
    if (this.#isAlive && (stalled.length > 0 || isSilent)) await this.#remedy(stalled, isSilent);
  }

  /** Time counts between two checks that both found the stores up; a process that slept did not stall. */
  #countTime(areStoresUp: boolean): number {
    const sinceMs = this.#lastCheckMs;
    const nowMs = this.#deps.monotonicMs();
    this.#lastCheckMs = areStoresUp ? nowMs : null;
    if (!areStoresUp || sinceMs === null) return 0;
    return Math.min(nowMs - sinceMs, 3 * this.#everyMs);
  }

  /** Measures for how long each partition of the consumer has not moved. */
  #measure(positions: readonly GroupPosition[], countedMs: number): void {
    const { topics, consumer, metrics } = this.#deps;
    const nowMs = this.#deps.nowMs();
    const assigned = new Set(consumer().assigned().map(keyOf));
    const standing = new Map<string, Standing>();
    for (const position of positions) {
      const key = keyOf(position);
      if (!assigned.has(key)) continue;
      metrics.setLag(position.topic, position.partition, position.lag);
      const before = this.#standing.get(key);
      const hasMoved = before?.position.committed !== position.committed;
      if (!before || hasMoved || position.lag === 0 || consumer().isWaiting(position)) {
        standing.set(key, { position, stillMs: 0, movedAtMs: nowMs });
      } else {
        const { stillMs, movedAtMs } = before;
        standing.set(key, { position, stillMs: stillMs + countedMs, movedAtMs });
      }
    }
    this.#standing = standing;
    const byTopic = Map.groupBy(standing.values(), ({ position }) => position.topic);
    for (const topic of topics) {
      const ofTopic = byTopic.get(topic) ?? [];
      metrics.setProgress(topic, Math.min(nowMs, ...ofTopic.map(({ movedAtMs }) => movedAtMs)));
    }
  }

  /**
   * Returns true when the fetch loop has hung for too long. It sends no heartbeats then: others take its
   * partitions, and none of them stalls.
   */
  #isSilent(countedMs: number): boolean {
    const fetches = this.#deps.consumer().fetches();
    this.#silentMs = fetches === this.#fetches ? this.#silentMs + countedMs : 0;
    if (fetches !== this.#fetches) this.#wasSilentBefore = false;
    this.#fetches = fetches;
    return this.#silentMs >= Math.max(this.#deps.stallMs, MIN_SILENCE_MS);
  }

  async #remedy(stalled: readonly GroupPosition[], isSilent: boolean): Promise<void> {
    const { logger, metrics, replaceConsumer } = this.#deps;
    const where = stalled.map(({ topic, partition, lag }) => ({ topic, partition, lag }));
    const isAgain = stalled.some((position) => this.#hadStalled(position));
    if ((isSilent && this.#wasSilentBefore) || isAgain) {
      this.#isAlive = false;
      logger.error(
        { stalled: where, isSilent },
        'the new consumer stalled too, the process must be restarted',
      );
      return;
    }
    this.#stalledBefore = stalled;
    this.#wasSilentBefore = isSilent;
    logger.error({ stalled: where, isSilent }, 'the consumer stalled, replacing it');
    metrics.restarts.inc();
    await replaceConsumer();
    // The new consumer gets the whole time.
    for (const each of this.#standing.values()) each.stillMs = 0;
    [this.#silentMs, this.#fetches, this.#lastCheckMs] = [0, 0, null];
  }

  #hadStalled(position: GroupPosition): boolean {
    return this.#stalledBefore.some(
      (before) => keyOf(before) === keyOf(position) && before.committed === position.committed,
    );
  }
}
