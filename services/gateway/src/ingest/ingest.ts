import {
  clusterOf,
  type IngestSource,
  type NamedSource,
  sourcesAmong,
} from '@posthorn/domain/ingest.ts';
import { createLoop, type Loop } from '@posthorn/platform/async/loop.ts';
import { readTopics, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { consume } from '@posthorn/platform/kafka/consumer/consume.ts';
import { createProcessShare } from '@posthorn/platform/kafka/consumer/partition-assignment.ts';
import {
  createGroupPositions,
  type GroupPosition,
  type GroupPositions,
} from '@posthorn/platform/kafka/offsets/group-positions.ts';
import type { KafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import {
  bytesOfStored,
  type Consumption,
  type IsOurs,
  keyOf,
  type LogRecord,
  type ReadyRecords,
  type TopicPartition,
} from '@posthorn/platform/kafka/record-log.ts';
import { createShares, type Shares } from '@posthorn/platform/memory/memory-budgets.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { withoutTopics } from './ingest-metrics.ts';
import { type LaneDeps, PartitionLane } from './partition-lane.ts';

/** The records in flight of all sources of a process. Each topic may have what is left free, see createShares. */
export interface IngestBudget {
  records: Shares;
  bytes: Shares;
}

/** A single topic has half: five batches of the group commit. */
const MAX_RECORDS = 2_000;
export const INGEST_BYTES = 33_554_432;

export const createIngestBudget = (): IngestBudget => ({
  records: createShares(MAX_RECORDS),
  bytes: createShares(INGEST_BYTES),
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
  metrics: KafkaMetrics;
  monotonicMs: () => number;
  logger: Logger;
}

/** A topic that is made later, or gets more partitions, is read within this time. */
const TOPICS_EVERY_MS = 10_000;
/** An idle consumer sends a request to each broker this often. A record is fetched as soon as it is there. */
const MAX_WAIT_MS = 500;
/** What is in flight when the topics change ends first, so that one lane at a time works on a partition. */
const REJOIN_DRAIN_MS = 5_000;
const IN_FLIGHT = { pauseAt: MAX_RECORDS / 2, resumeAt: MAX_RECORDS / 4 };
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

  constructor(deps: ClusterIngestDeps) {
    this.#deps = deps;
    const { logger } = deps;
    const run = (): Promise<void> => this.#check();
    this.#loop = createLoop({ name: 'sources', everyMs: TOPICS_EVERY_MS, run, logger });
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

  /** Returns how many records of this company's topics no gateway has accepted yet; null when it has no topic here. */
  lagOf(companyId: string): Promise<number | null> {
    return this.#session?.lagOf(companyId) ?? Promise.resolve(null);
  }

  /** By the name of the source. */
  ready(nowMs: number): ReadonlyMap<string, ReadyRecords> {
    return this.#session?.ready(nowMs) ?? new Map();
  }

  async #check(): Promise<void> {
    const { kafka, ownTopics } = this.#deps;
    const existing = await readTopics(kafka);
    const sources = sourcesAmong(existing.keys(), this.#deps);
    const readable = new Map([...sources].filter(([topic]) => !ownTopics.has(topic)));
    const topics = [...readable.keys()].map((topic) => `${topic} ${existing.get(topic) ?? 0}`);
    const found = topics.toSorted().join();
    if (found === this.#topics && this.#session?.isAlive() !== false) return;
    await this.#end(REJOIN_DRAIN_MS);
    this.#reportMissing(existing);
    if (readable.size > 0) await this.#begin(readable);
    // Not before: after a failure the next check begins anew.
    this.#topics = found;
  }

  async #begin(readable: ReadonlyMap<string, NamedSource>): Promise<void> {
    const { kafka, logger } = this.#deps;
    const { clusterId } = await withAdmin(kafka, { timeoutMs: 10_000 }, (admin) =>
      admin.describeCluster(),
    );
    logger.info({ topics: [...readable.keys()] }, 'ingesting from topics');
    const session = new Session(this.#deps, readable, clusterId);
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

/** How long a lag is shown before it is read again: Kafka is asked for all partitions of the sources. */
const LAG_FOR_MS = 10_000;

/** One membership in the group, for a fixed list of topics. */
class Session {
  readonly #deps: ClusterIngestDeps;
  readonly #sources: ReadonlyMap<string, NamedSource>;
  readonly #lanes = new Map<string, PartitionLane>();
  readonly #laneDeps: LaneDeps;
  readonly #stopping = new AbortController();
  #consumption: Consumption | null = null;
  #ready: (nowMs: number) => ReadonlyMap<string, ReadyRecords> = () => new Map();
  #isBroken = false;
  #isChanging = false;
  #confirmedAtMs = -Infinity;
  readonly #positions: GroupPositions;
  #lag: Promise<GroupPosition[]> = Promise.resolve([]);
  #lagReadAtMs = -Infinity;

  constructor(
    deps: ClusterIngestDeps,
    sources: ReadonlyMap<string, NamedSource>,
    clusterId: string,
  ) {
    this.#deps = deps;
    this.#sources = sources;
    const isSteady = (): boolean =>
      !this.#isChanging && deps.monotonicMs() - this.#confirmedAtMs < CONFIRMED_WITHIN_MS;
    const { kafka, groupId } = deps;
    this.#positions = createGroupPositions(kafka, { groupId, topics: [...sources.keys()] });
    this.#laneDeps = deps.laneDeps(clusterId, isSteady, this.#stopping.signal);
  }

  async start(): Promise<void> {
    const { kafka, groupId, logger, metrics, areStoresUp, budget } = this.#deps;
    const consumerDeps = {
      kafka,
      share: createProcessShare(randomUUID()),
      logger,
      metrics: withoutTopics(metrics, ({ ready }) => (this.#ready = ready)),
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
      mayRead: (topic) =>
        budget.records.hasRoom(this.#ownerOf(topic), 1) &&
        budget.bytes.hasRoom(this.#ownerOf(topic), 1),
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
        this.#forgetIdle(assignment);
      },
      handle: (record, isOurs) => this.#handle(record, isOurs),
    });
  }

  async lagOf(companyId: string): Promise<number | null> {
    const ofCompany = [...this.#sources.values()].filter((each) => each.companyId === companyId);
    if (ofCompany.length === 0) return null;
    const topics = new Set(ofCompany.map(({ topic }) => topic));
    const nowMs = this.#deps.monotonicMs();
    if (nowMs - this.#lagReadAtMs >= LAG_FOR_MS) {
      this.#lagReadAtMs = nowMs;
      this.#lag = this.#positions.read();
    }
    const found = await this.#lag;
    return found.reduce((sum, { topic, lag }) => sum + (topics.has(topic) ? lag : 0), 0);
  }

  isRunning(): boolean {
    return this.#consumption?.isRunning() === true;
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

  async stop(drainMs: number): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#consumption?.stop(drainMs), this.#positions.close()]);
  }

  async #handle(record: LogRecord, isOurs: IsOurs): Promise<void> {
    const { records, bytes } = this.#deps.budget;
    const owner = this.#ownerOf(record.topic);
    const held = bytesOfStored(record.stored);
    records.add(owner, 1);
    bytes.add(owner, held);
    try {
      await this.#laneOf(record).add(record, isOurs);
    } finally {
      records.remove(owner, 1);
      bytes.remove(owner, held);
    }
  }

  #ownerOf(topic: string): string {
    return `${this.#deps.cluster}/${topic}`;
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

  /** A lane that works on is kept: its partition may come back, and has one lane at a time. */
  #forgetIdle(assignment: Readonly<Record<string, readonly number[]>>): void {
    const owned = new Set(
      Object.entries(assignment).flatMap(([topic, partitions]) =>
        partitions.map((partition) => keyOf({ topic, partition } satisfies TopicPartition)),
      ),
    );
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

/** The clusters of the sources; the installation's own is first, as ''. */
export function clustersOf(sources: readonly IngestSource[], hasCompanyTopics: boolean): string[] {
  const own = hasCompanyTopics ? [''] : [];
  return [...new Set([...own, ...sources.map(clusterOf)])].toSorted();
}
