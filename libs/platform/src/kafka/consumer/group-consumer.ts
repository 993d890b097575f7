import type { Kafka } from 'kafkajs';
import { setMaxListeners } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { createKeepTrying } from '../../async/keep-trying.ts';
import { createLoop, type Loop } from '../../async/loop.ts';
import { withTimeout } from '../../async/pause.ts';
import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import {
  type ConsumeOptions,
  type ReadyRecords,
  TOGETHER,
  type TopicPartition,
} from '../record-log.ts';
import type { UnreadRecords } from '../unread-records.ts';
import { BatchHandler } from './batch-handler.ts';
import {
  createGroupClient,
  type FetchedBatch,
  type GroupClient,
  type GroupEvents,
  type SendCommit,
} from './group-client.ts';
import type { ProcessShare } from './partition-assignment.ts';

export interface ConsumerDeps {
  kafka: Kafka;
  /** Tests observe the members of groups here. */
  openGroupClient?: typeof createGroupClient;
  /** The partitions of this process, which its members report in their groups. */
  share: ProcessShare;
  logger: Logger;
  metrics: KafkaMetrics;
  /** The clock by which records are due, in milliseconds since 1970: the database's, as of what they are compared with. */
  nowMs: () => number;
  /** Called when the consumer has stopped for good and only a restart of the process helps. */
  onFatal: (reason: string) => void;
}

const COMMIT_EVERY_MS = 250;
/** The other members wait for the join of this one. */
const COMMITTED_WITHIN_MS = 1_000;
const DRAIN_CHECK_MS = 20;
/** Most attempts end within this time, and nobody has to wait for them. Nobody reads its partitions meanwhile. */
const HANDED_OVER_AFTER_MS = 250;
/** A rebalance that runs ends within the session timeout of ten seconds, or is not worth the wait. */
const LEAVE_TIMEOUT_MS = 8_000;

/** One consumer with its own offsets and pauses; the consumer that replaces it shares nothing with it. */
export class GroupConsumer {
  readonly #deps: ConsumerDeps;
  readonly #options: ConsumeOptions;
  readonly #logger: Logger;
  readonly #client: GroupClient;
  readonly #batches: BatchHandler;
  readonly #commits: Loop;
  readonly #stopReading = new AbortController();
  #isMember = false;
  /** True once the consumer was stopped or discarded; its events are ignored from then on. */
  #isOver = false;
  /** True while the group changes: a record begun now may be begun by another member as well. */
  #isRebalancing = false;
  #assignment: Readonly<Record<string, number[]>> = {};
  /** Commits in the present generation of the group; null while the consumer is no member, or has read nothing. */
  #sendCommit: SendCommit | null = null;
  #fetches = 0;

  constructor(deps: ConsumerDeps, options: ConsumeOptions) {
    const { kafka, share, metrics, openGroupClient = createGroupClient } = deps;
    this.#deps = deps;
    this.#options = options;
    this.#logger = deps.logger.child({ groupId: options.groupId });
    this.#client = openGroupClient(kafka, options, this.#events(), share.report);
    const { signal: stopping } = this.#stopReading;
    // Each record that waits for its next try listens to it.
    setMaxListeners(0, stopping);
    this.#batches = new BatchHandler(options, {
      client: this.#client,
      keepTrying: createKeepTrying({ logger: this.#logger, signal: stopping }),
      stopping,
      nowMs: deps.nowMs,
      logger: this.#logger,
      metrics,
    });
    this.#commits = createLoop({
      name: 'offset commits',
      everyMs: COMMIT_EVERY_MS,
      run: () => this.#commit(),
      logger: this.#logger,
    });
  }

  /** Joins the group and reads. Rejects when Kafka cannot be reached. */
  async start(): Promise<void> {
    await this.#client.start();
    if (!this.#isOver) this.#commits.start();
  }

  /** See Consumption.stop. */
  async stop(drainMs: number): Promise<void> {
    this.#stopReading.abort();
    const drained = performance.now() + drainMs;
    const handedOver = performance.now() + Math.min(drainMs, HANDED_OVER_AFTER_MS);
    // Checked each time: Redis may go away meanwhile.
    const until = (): number => (this.#options.mayHandOver?.() ? handedOver : drained);
    await waitFor(this.#batches.offsets.isIdle, until);
    await this.#commits.stop();
    await this.#commit();
    await this.#leave();
    // Records whose partition went to another member before are waited for too.
    await waitFor(
      () => this.#batches.isIdle(),
      () => drained,
    );
  }

  /** Leaves the group without waiting and without a commit; results of records in flight are ignored. */
  async discard(): Promise<void> {
    void this.#commits.stop();
    await this.#leave();
  }

  isRunning(): boolean {
    return this.#isMember;
  }

  assigned(): TopicPartition[] {
    return Object.entries(this.#assignment).flatMap(([topic, partitions]) =>
      partitions.map((partition) => ({ topic, partition })),
    );
  }

  /** See BatchHandler.isWaiting. */
  isWaiting(partition: TopicPartition): boolean {
    return this.#batches.isWaiting(partition);
  }

  /** See BatchHandler.ready. */
  ready(nowMs: number): ReadonlyMap<string, ReadyRecords> {
    return this.#batches.ready(this.#assignment, nowMs);
  }

  get unread(): UnreadRecords {
    return this.#batches.unread;
  }

  /** Returns how many iterations the fetch loop has made. */
  fetches(): number {
    return this.#fetches;
  }

  #events(): GroupEvents {
    return {
      onFetch: () => (this.#fetches += 1),
      onRebalancing: () => this.#onRebalancing(),
      onConfirmed: () => {
        // A change that came to nothing ends so: a coordinator that has just moved refuses both the
        // heartbeat and the join, and has loaded the group as it was.
        this.#isRebalancing = false;
        if (!this.#isOver) this.#options.onConfirmed?.();
      },
      onJoined: (assignment) => {
        this.#onJoined(assignment);
      },
      onBatch: (batch, sendCommit) => {
        this.#onBatch(batch, sendCommit);
      },
      onLost: () => {
        if (this.#isOver) return;
        this.#endMembership();
        this.#deps.metrics.restarts.inc();
      },
      onFatal: (error) => {
        if (this.#isOver) return;
        this.#endMembership();
        this.#deps.onFatal(`the consumer of ${this.#options.groupId} stopped: ${error.message}`);
      },
    };
  }

  async #onRebalancing(): Promise<void> {
    if (this.#isOver) return;
    this.#isRebalancing = true;
    this.#options.onRebalancing?.();
    // The next owner handles records again that are not committed before the join. The first tick may be a commit that
    // runs already.
    const commits = this.#commits.tick().then(() => this.#commits.tick());
    await withTimeout(commits, COMMITTED_WITHIN_MS).catch(() => undefined);
  }

  #onJoined(assignment: Readonly<Record<string, number[]>>): void {
    if (this.#isOver) return;
    const { metrics, share } = this.#deps;
    const { topics, sharing = TOGETHER, onAssigned, onConfirmed } = this.#options;
    metrics.rebalances.inc();
    metrics.keepLagOf(topics, assignment);
    this.#batches.assign(assignment);
    this.#assignment = assignment;
    this.#isMember = true;
    this.#isRebalancing = false;
    share.joined(sharing, assignment);
    onAssigned?.(assignment);
    onConfirmed?.();
  }

  #onBatch(batch: FetchedBatch, sendCommit: SendCommit): void {
    const { topic, partition } = batch.batch;
    // The records are read again after the change, by their next owner.
    if (this.#isOver || this.#isRebalancing) return;
    // A fetch that was under way may be handed over when the partition is ours no longer.
    if (!this.#assignment[topic]?.includes(partition)) return;
    this.#sendCommit = sendCommit;
    this.#batches.handle(batch);
  }

  /** Commits the contiguously finished records. Never rejects. */
  async #commit(): Promise<void> {
    const { operations, commitFailures } = this.#deps.metrics;
    const commits = this.#batches.offsets.uncommitted();
    const send = this.#sendCommit;
    if (commits.length === 0 || !send) return;
    const startedMs = performance.now();
    try {
      await send(commits);
      operations.succeeded('commit', performance.now() - startedMs);
      this.#batches.offsets.markCommitted(commits);
      const committed = new Set(commits.map(({ topic }) => topic));
      for (const topic of committed) this.#batches.resumeReading(topic);
    } catch (error) {
      commitFailures.inc();
      operations.failed('commit', performance.now() - startedMs);
      this.#logger.warn({ err: error }, 'a commit failed, the next one covers it');
    }
  }

  #endMembership(): void {
    this.#isMember = false;
    this.#sendCommit = null;
  }

  async #leave(): Promise<void> {
    this.#isOver = true;
    this.#endMembership();
    this.#stopReading.abort();
    this.#batches.close();
    await withTimeout(this.#client.leave(), LEAVE_TIMEOUT_MS).catch((error: unknown) => {
      this.#logger.warn(
        { err: error },
        'the consumer did not leave its group; its partitions are idle until its session times out',
      );
    });
  }
}

async function waitFor(isOver: () => boolean, untilMs: () => number): Promise<void> {
  while (!isOver() && performance.now() < untilMs()) await wait(DRAIN_CHECK_MS);
}
