import {
  clusterOf,
  type IngestSource,
  type NamedSource,
  sourcesAmong,
} from '@posthorn/domain/ingest.ts';
import { reportOf, type RetryReason } from '@posthorn/domain/ingest-lag.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { describeTopics, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { consume } from '@posthorn/platform/kafka/consumer/consume.ts';
import { createProcessShare } from '@posthorn/platform/kafka/consumer/partition-assignment.ts';
import type { OutOfRange } from '@posthorn/platform/kafka/patches/offset-out-of-range.ts';
import type { KafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import {
  bytesOfStored,
  type Consumption,
  GiveBackError,
  type IsOurs,
  keyOf,
  type LogRecord,
  type ReadyRecords,
  type TopicPartition,
} from '@posthorn/platform/kafka/record-log.ts';
import { createShares, type Shares } from '@posthorn/platform/memory/memory-budgets.ts';
import type { PartitionReport } from '@posthorn/platform/redis/ingest-reports.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { withoutTopics } from './ingest-metrics.ts';
import { type LaneDeps, PartitionLane } from './partition-lane.ts';

/** The records in flight of all sources of a process. Each company may have what is left free, see createShares. */
export interface IngestBudget {
  records: Shares;
  bytes: Shares;
}

/** A single company has half: five batches of the group commit. */
const MAX_RECORDS = 2_000;

export const createIngestBudget = (recordBytes: number): IngestBudget => ({
  records: createShares(MAX_RECORDS),
  bytes: createShares(recordBytes),
});

export interface ClusterIngestDeps {
  kafka: Kafka;
  groupId: string;
  /** See clusterOf. */
  cluster: string;
  sources: readonly IngestSource[];
  /** TOPIC_PREFIX where company topics of this cluster are read; else null. */
  companyTopicsPrefix: string | null;
  /** Topics of this cluster that have Posthorn's own records. */
  ownTopics: ReadonlySet<string>;
  budget: IngestBudget;
  /** What the lane of a partition works with. */
  laneDeps: (clusterId: string, isSteady: () => boolean, stopping: AbortSignal) => LaneDeps;
  areStoresUp: () => boolean;
  /** Called with the name of the source whose partition does not have the offset that is wanted. */
  onOutOfRange: (source: string, found: OutOfRange) => void;
  metrics: KafkaMetrics;
  monotonicMs: () => number;
  /** Milliseconds since 1970. */
  nowMs: () => number;
  logger: Logger;
}

/** Topic → its id, which changes when the topic is deleted and made again. */
type TopicIds = ReadonlyMap<string, string>;

/** A topic that is made later, or gets more partitions, is seen within this time: by all processes at the same moment. */
const TOPICS_EVERY_MS = 10_000;
/**
 * Each change makes every process join the group anew, and nothing is accepted until that is done. So the next one waits: one
 * a minute for any number of topics.
 */
const CHANGE_EVERY_MS = 60_000;
const LOOK_EVERY_MS = 1_000;
/** An idle consumer sends a request to each broker this often. A record is fetched as soon as it is there. */
const MAX_WAIT_MS = 500;
/** What is in flight when the topics change ends first, so that one lane at a time works on a partition. */
const REJOIN_DRAIN_MS = 5_000;
/** After a kill, one page of a backlog filled all of it, and two partitions of eleven waited for 31 and 38 s. */
const IN_FLIGHT = { pauseAt: MAX_RECORDS / 2, resumeAt: MAX_RECORDS / 4, isShared: true } as const;
/**
 * Ids have the time of the process that makes them, which follows the clock of the database to some milliseconds, on a
 * busy machine to some tens. A partition goes to its next owner within less, and 47 of 1,000,000 messages had ids before
 * those of earlier records. So whoever gets a partition begins this much later.
 */
const HANDOVER_MS = 500;
/**
 * A member that was not confirmed for so long may have lost its partitions. The others get them after the session
 * timeout of ten seconds, so it accepts nothing from then on.
 */
const CONFIRMED_WITHIN_MS = 5_000;

/**
 * Reads the sources of one cluster in one group, and accepts their records. Looks for its topics again and again, and
 * joins anew when they have changed or its consumer hangs.
 */
export class ClusterIngest {
  readonly #deps: ClusterIngestDeps;
  readonly #loop: Loop;
  /** The topics that are read, with their numbers of partitions, as text; null until that has begun. */
  #topics: string | null = null;
  #session: Session | null = null;
  #lookedInTurn = -1;
  /** When the topics changed last while others were read, by the monotonic clock. */
  #changedAtMs = -Infinity;

  constructor(deps: ClusterIngestDeps) {
    this.#deps = deps;
    const { logger } = deps;
    const run = (): Promise<void> => this.#look();
    this.#loop = createLoop({ name: 'sources', everyMs: LOOK_EVERY_MS, run, logger });
  }

  start(): void {
    this.#loop.start();
    void this.#loop.tick();
  }

  /** Reads what is there to read now. */
  tick(): Promise<void> {
    return this.#loop.tick();
  }

  async stop(drainMs: number): Promise<void> {
    // A tick that waits for Kafka may begin a session yet, which the next line would miss.
    await this.#loop.stop();
    await this.#end(drainMs);
  }

  /** True while it is a member of its group, or there is nothing to read. */
  isRunning(): boolean {
    return this.#session?.isRunning() ?? this.#topics === '';
  }

  /** How many records of all sources of the process are read and not finished. */
  inFlight(): number {
    return this.#deps.budget.records.used();
  }

  /** By the name of the source. */
  ready(nowMs: number): ReadonlyMap<string, ReadyRecords> {
    return this.#session?.ready(nowMs) ?? new Map();
  }

  /** Why the records of its partitions wait, of those that have a reason (docs/ingest.md). */
  reports(): PartitionReport[] {
    return this.#session?.reports() ?? [];
  }

  async #look(): Promise<void> {
    const turn = Math.floor(this.#deps.nowMs() / TOPICS_EVERY_MS);
    if (turn === this.#lookedInTurn && this.#session?.isAlive() !== false) return;
    await this.#check();
    this.#lookedInTurn = turn;
  }

  async #check(): Promise<void> {
    const { kafka, ownTopics } = this.#deps;
    const existing = await describeTopics(kafka);
    const sources = sourcesAmong(existing.keys(), this.#deps);
    const readable = new Map([...sources].filter(([topic]) => !ownTopics.has(topic)));
    const described = [...existing].filter(([topic]) => readable.has(topic));
    const ids = new Map(described.map(([topic, { id }]) => [topic, id]));
    const topics = described.map(([topic, { partitions, id }]) => `${topic} ${partitions} ${id}`);
    const found = topics.toSorted().join();
    if (this.#session?.isAlive() === true) {
      if (found === this.#topics) return;
      const nowMs = this.#deps.monotonicMs();
      // A topic that was deleted fails the metadata of all, and kafkajs reads nothing any more. One that was made again
      // has records before the place where it is read.
      const mayWait = this.#session.readsOnly(ids);
      if (mayWait && nowMs - this.#changedAtMs < CHANGE_EVERY_MS) return;
      this.#changedAtMs = nowMs;
    } else if (found === this.#topics && !this.#session) return;
    await this.#end(REJOIN_DRAIN_MS);
    this.#reportMissing(existing);
    if (readable.size > 0) await this.#begin(readable, ids);
    // Not before: after a failure the next check begins anew.
    this.#topics = found;
  }

  async #begin(readable: ReadonlyMap<string, NamedSource>, ids: TopicIds): Promise<void> {
    const { kafka, logger } = this.#deps;
    const { clusterId } = await withAdmin(kafka, { timeoutMs: 10_000 }, (admin) =>
      admin.describeCluster(),
    );
    logger.info({ topics: [...readable.keys()] }, 'ingesting from topics');
    const session = new Session(this.#deps, readable, ids, clusterId);
    this.#session = session;
    await session.start();
  }

  #reportMissing(existing: ReadonlyMap<string, unknown>): void {
    const { sources, cluster, logger } = this.#deps;
    const missing = sources
      .filter((each) => clusterOf(each) === cluster && !existing.has(each.topic))
      .map(({ topic }) => topic);
    if (missing.length === 0) return;
    logger.warn(
      { topics: missing },
      'sources are not read: they have no topic yet, or the Kafka user lacks Describe',
    );
  }

  async #end(drainMs: number): Promise<void> {
    const session = this.#session;
    this.#session = null;
    this.#topics = null;
    await session?.stop(drainMs);
  }
}

/** One membership in the group, for a fixed list of topics. */
class Session {
  readonly #deps: ClusterIngestDeps;
  readonly #sources: ReadonlyMap<string, NamedSource>;
  readonly #ids: TopicIds;
  readonly #lanes = new Map<string, PartitionLane>();
  readonly #laneDeps: LaneDeps;
  readonly #stopping = new AbortController();
  /** Topics with a partition that was given back. One record of each is in flight at a time, until one is accepted. */
  readonly #givenBack = new Set<string>();
  #owned: readonly TopicPartition[] = [];
  /** By `keyOf`: how many records were finished at the last report. */
  #reported = new Map<string, number>();
  #reportedAtMs: number;
  #consumption: Consumption | null = null;
  #ready: (nowMs: number) => ReadonlyMap<string, ReadyRecords> = () => new Map();
  #isBroken = false;
  #isChanging = false;
  #confirmedAtMs = -Infinity;
  /** When the former owners of its partitions have certainly made their last ids. */
  #mayBeginAtMs = -Infinity;

  constructor(
    deps: ClusterIngestDeps,
    sources: ReadonlyMap<string, NamedSource>,
    ids: TopicIds,
    clusterId: string,
  ) {
    this.#deps = deps;
    this.#sources = sources;
    this.#ids = ids;
    this.#reportedAtMs = deps.monotonicMs();
    const isSteady = (): boolean => this.#isSteady();
    this.#laneDeps = deps.laneDeps(clusterId, isSteady, this.#stopping.signal);
  }

  #isSteady(): boolean {
    const nowMs = this.#deps.monotonicMs();
    const isConfirmed = nowMs - this.#confirmedAtMs < CONFIRMED_WITHIN_MS;
    return !this.#isChanging && isConfirmed && nowMs >= this.#mayBeginAtMs;
  }

  async start(): Promise<void> {
    const { kafka, groupId, logger, metrics, areStoresUp } = this.#deps;
    const consumerDeps = {
      kafka,
      share: createProcessShare(randomUUID()),
      logger,
      metrics: withoutTopics(metrics, ({ ready }) => (this.#ready = ready)),
      // Its records have the times of their producers.
      nowMs: systemClockMs,
      onFatal: (reason: string) => {
        logger.error({ reason }, 'the consumer of sources ended, joining anew');
        this.#isBroken = true;
      },
    };
    this.#consumption = await consume(consumerDeps, {
      groupId,
      topics: [...this.#sources.keys()],
      sharing: { kind: 'evenly', after: 0 },
      inFlightLimits: IN_FLIGHT,
      takesUnreadable: true,
      outOfRange: {
        cluster: this.#deps.cluster,
        listener: (found) => {
          const source = this.#sources.get(found.topic);
          if (source) this.#deps.onOutOfRange(source.name, found);
        },
      },
      mayRead: (topic) => !this.#givenBack.has(topic) && this.#hasRoom(topic),
      maxWaitMs: MAX_WAIT_MS,
      areStoresUp,
      isWaiting: (partition) => this.#lanes.get(keyOf(partition))?.isWaiting() === true,
      // Whoever reads a record next finds its message by its key.
      mayHandOver: () => true,
      onRebalancing: () => (this.#isChanging = true),
      onConfirmed: () => {
        this.#isChanging = false;
        this.#confirmedAtMs = this.#deps.monotonicMs();
      },
      onAssigned: (assignment) => {
        this.#changeOwned(assignment);
      },
      handle: (record, isOurs) => this.#handle(record, isOurs),
    });
  }

  isRunning(): boolean {
    return this.#consumption?.isRunning() === true;
  }

  /** True when every topic that it reads is among these. */
  readsOnly(ids: TopicIds): boolean {
    return [...this.#ids].every(([topic, id]) => ids.get(topic) === id);
  }

  isAlive(): boolean {
    return !this.#isBroken && this.#consumption?.isAlive() === true;
  }

  ready(nowMs: number): ReadonlyMap<string, ReadyRecords> {
    const named = [...this.#ready(nowMs)].map(([topic, ready]): [string, ReadyRecords] => [
      this.#sources.get(topic)?.name ?? topic,
      ready,
    ]);
    return sumReady(named.map((each) => [each]));
  }

  /** Returns what is known of each partition since the call before. */
  reports(): PartitionReport[] {
    const nowMs = this.#deps.monotonicMs();
    const seconds = Math.max(0.001, (nowMs - this.#reportedAtMs) / 1_000);
    const finished = new Map([...this.#lanes].map(([key, lane]) => [key, lane.finished()]));
    const perSecond = (key: string): number =>
      // The lane of a partition that came back begins at 0.
      Math.max(0, (finished.get(key) ?? 0) - (this.#reported.get(key) ?? 0)) / seconds;
    const ofProcess = { areStoresUp: this.#deps.areStoresUp(), isSteady: this.#isSteady() };
    const ofTopics = this.#whyGivenBack();
    const reports = this.#owned.flatMap(({ topic, partition }): PartitionReport[] => {
      const key = keyOf({ topic, partition });
      const lane = this.#lanes.get(key);
      const report = reportOf({
        ...ofProcess,
        retried: lane?.retried() ?? ofTopics.get(topic) ?? null,
        inFlight: lane?.isIdle() === false,
        hasRoom: this.#hasRoom(topic),
        perSecond: perSecond(key),
      });
      return report ? [{ topic, partition, report }] : [];
    });
    [this.#reported, this.#reportedAtMs] = [finished, nowMs];
    return reports;
  }

  /** Topic → why one of its partitions was given back: the others are not read either. */
  #whyGivenBack(): Map<string, RetryReason | null> {
    const found = new Map<string, RetryReason | null>();
    if (this.#givenBack.size === 0) return found;
    for (const { topic, partition } of this.#owned) {
      const why = this.#lanes.get(keyOf({ topic, partition }))?.retried() ?? null;
      if (why && this.#givenBack.has(topic)) found.set(topic, why);
    }
    return found;
  }

  #hasRoom(topic: string): boolean {
    const { records, bytes } = this.#deps.budget;
    const owner = this.#ownerOf(topic);
    return records.hasRoom(owner, 1) && bytes.hasRoom(owner, 1);
  }

  async stop(drainMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#consumption?.stop(drainMs);
  }

  async #handle(record: LogRecord, isOurs: IsOurs): Promise<void> {
    const { records, bytes } = this.#deps.budget;
    const owner = this.#ownerOf(record.topic);
    const held = bytesOfStored(record.stored);
    records.add(owner, 1);
    bytes.add(owner, held);
    try {
      await this.#laneOf(record).add(record, isOurs);
      this.#givenBack.delete(record.topic);
    } catch (error) {
      if (error instanceof GiveBackError) this.#givenBack.add(record.topic);
      throw error;
    } finally {
      records.remove(owner, 1);
      bytes.remove(owner, held);
    }
  }

  /** A company with many topics has one share. */
  #ownerOf(topic: string): string {
    return this.#sources.get(topic)?.companyId ?? topic;
  }

  #laneOf(record: LogRecord): PartitionLane {
    const key = keyOf(record);
    const known = this.#lanes.get(key);
    if (known) return known;
    const source = this.#sources.get(record.topic);
    if (!source) throw new Error(`${record.topic} is no source`);
    const lane = new PartitionLane(source, this.#laneDeps);
    this.#lanes.set(key, lane);
    return lane;
  }

  #changeOwned(assignment: Readonly<Record<string, readonly number[]>>): void {
    this.#owned = Object.entries(assignment).flatMap(([topic, partitions]) =>
      partitions.map((partition) => ({ topic, partition })),
    );
    const owned = new Set(this.#owned.map(keyOf));
    // Also of those that it had: another member may have had them meanwhile.
    this.#mayBeginAtMs = this.#deps.monotonicMs() + HANDOVER_MS;
    // A lane that works on is kept: its partition may come back, and has one lane at a time.
    for (const [key, lane] of this.#lanes) {
      if (!owned.has(key) && lane.isIdle()) this.#lanes.delete(key);
    }
  }
}

/** Adds up what has the same name. */
export function sumReady(
  all: readonly Iterable<[string, ReadyRecords]>[],
): ReadonlyMap<string, ReadyRecords> {
  const sums = new Map<string, ReadyRecords>();
  for (const [name, { records, oldestMs }] of all.flatMap((each) => [...each])) {
    const sum = sums.get(name);
    sums.set(name, {
      records: (sum?.records ?? 0) + records,
      oldestMs: Math.min(sum?.oldestMs ?? Infinity, oldestMs),
    });
  }
  return sums;
}
