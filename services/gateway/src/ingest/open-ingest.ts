import {
  ingestGroupId,
  type NamedSource,
  REJECT_CODES,
  type RejectCode,
} from '@posthorn/domain/ingest.ts';
import { topicSpecs } from '@posthorn/domain/records/topics.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { createKafkaClient, kafkaAccessOf } from '@posthorn/platform/kafka/connect.ts';
import type { OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { LogRecord, ReadyRecords } from '@posthorn/platform/kafka/record-log.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { CompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import type { ClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import {
  type ClaimedKey,
  type KeyHolders,
  mayTakeOver,
} from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import { publishRejects, type Reject } from '@posthorn/platform/records/ingest-rejects.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { AcceptOutcome } from '../accept/idempotency.ts';
import { isFault, isTemporary, toApiError } from '../api-error.ts';
import type { GatewayConfig } from '../config.ts';
import type { Gateway } from '../gateway.ts';
import type { IngestLag } from '../history/overview.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import type { CompanyRests, TakeTurn, Turns } from '../limits/turns.ts';
import { createResolveUids, type ResolveUids } from '../projects/uids.ts';
import {
  ClusterIngest,
  type ClusterIngestDeps,
  clustersOf,
  createIngestBudget,
  INGEST_BYTES,
  type IngestBudget,
  sumReady,
} from './ingest.ts';
import { createIngestMetrics, type IngestMetrics, sourceNames } from './ingest-metrics.ts';
import type { LaneDeps, ReadRecord, RecordOutcome, Refused } from './partition-lane.ts';
import { type IngestedMessage, readRecord } from './read-record.ts';

export interface IngestParts {
  context: ServiceContext<GatewayConfig>;
  kafka: OpenRecordLog;
  clock: ClockWatch;
  budgets: MemoryBudgets;
  turns: Turns;
  rests: CompanyRests;
  limits: Pick<RateLimits, 'takeMessages'>;
  gateway: Pick<Gateway, 'acceptMany' | 'db' | 'messages' | 'uids' | 'nowMs'>;
  life: Pick<CompanyLife, 'statusOf'>;
  isMongoConnected: () => boolean;
  monotonicMs: () => number;
}

/** Starts to accept the records of the sources that are configured (docs/decisions/0060-ingestion-from-kafka.md). */
export function openIngest(parts: IngestParts): IngestLag {
  const { context, kafka, budgets, gateway } = parts;
  const { config, lifecycle, registry } = context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS: hasCompanyTopics } = config;
  const clusters = clustersOf(sources, hasCompanyTopics);
  if (clusters.length === 0) return () => Promise.resolve(null);
  const budget = createIngestBudget();
  budgets.add('ingest', INGEST_BYTES, budget.bytes.used);
  const { nowMs } = gateway;
  const running: ClusterIngest[] = [];
  const ready = (): ReadonlyMap<string, ReadyRecords> =>
    sumReady(running.map((each) => each.ready(nowMs())));
  const topics = sources.map(({ topic }) => topic);
  const names = sourceNames(topics, hasCompanyTopics);
  const metrics = createIngestMetrics(registry, { sources: names, ready, nowMs });
  const laneDeps = createLaneDeps(parts, metrics);
  running.push(...clusters.map((each) => openCluster(each, { parts, budget, laneDeps })));
  kafka.metrics.show(ingestGroupId(config.TOPIC_PREFIX), {
    isRunning: () => running.every((each) => each.isRunning()),
    ready: () => new Map(),
  });
  for (const each of running) each.start();
  lifecycle.onStop('ingest', async () => {
    await Promise.all(running.map((each) => each.stop(config.DRAIN_TIMEOUT_MS)));
  });
  return (companyId) => sumOfLags(running.map((each) => each.lagOf(companyId)));
}

/** Returns null when no cluster has a topic of the company, and when one cannot be read: the sum would be too small. */
export async function sumOfLags(lags: readonly Promise<number | null>[]): Promise<number | null> {
  const found = await Promise.all(lags).catch((): null[] => []);
  let sum: number | null = null;
  for (const lag of found) if (lag !== null) sum = (sum ?? 0) + lag;
  return sum;
}

interface ClusterParts {
  parts: IngestParts;
  budget: IngestBudget;
  laneDeps: ClusterIngestDeps['laneDeps'];
}

function openCluster(cluster: string, { parts, budget, laneDeps }: ClusterParts): ClusterIngest {
  const { context, kafka } = parts;
  const { config, logger } = context;
  const { INGEST_SOURCES: sources = [], INGEST_COMPANY_TOPICS, TOPIC_PREFIX: prefix } = config;
  const isOwn = cluster === '';
  const ownTopics = topicSpecs(kafka.topics).map(({ name }) => name);
  const access = { ...kafkaAccessOf(config), brokers: cluster.split(',') };
  return new ClusterIngest({
    kafka: isOwn ? kafka.kafka : createKafkaClient('posthorn-ingest', access, logger),
    groupId: ingestGroupId(prefix),
    cluster,
    sources,
    companyTopicsPrefix: isOwn && INGEST_COMPANY_TOPICS ? prefix : null,
    ownTopics: isOwn ? new Set([...ownTopics, ...kafka.delayTopics.keys()]) : new Set(),
    budget,
    laneDeps,
    areStoresUp: parts.isMongoConnected,
    metrics: kafka.metrics,
    monotonicMs: parts.monotonicMs,
    logger,
  });
}

function createLaneDeps(
  parts: IngestParts,
  metrics: IngestMetrics,
): (clusterId: string, isSteady: () => boolean, stopping: AbortSignal) => LaneDeps {
  const { context, limits, rests, turns } = parts;
  const { logger, keepTryingWhileDraining } = context;
  const resolveUids = createResolveUids(parts.gateway.uids.idOf);
  const whyWaits = createWhyWaits(parts);
  const reportWait = createWaitReport(logger, parts.monotonicMs);
  const takeTurnOf = (companyId: string): TakeTurn => {
    return async (laterMs = 0) => {
      await turns.take(companyId);
      if (laterMs > 0) rests.charge(companyId, laterMs);
    };
  };
  return (clusterId, isSteady, stopping) => ({
    read: (record, source) => tryToRead(record, source, clusterId),
    takePermits: limits.takeMessages,
    freeClaims: createFreeClaims({
      ...parts.gateway,
      areDaysSpread: parts.gateway.db.days.areSpread,
      stopping,
    }),
    async accept(source, messages) {
      const { companyId } = source;
      rests.note(companyId);
      const takeTurn = takeTurnOf(companyId);
      await takeTurn();
      const outcomes = await acceptAll(parts, resolveUids, messages, takeTurn);
      metrics.accepted(source.name, countsOf(outcomes));
      return outcomes;
    },
    async reject(source, refused) {
      const rejects = refused.map((each) => ({ ...toReject(each, clusterId), error: each.error }));
      await publishRejects(parts.kafka, parts.kafka.topics.ingestRejected, rejects);
      for (const [code, ofCode] of Map.groupBy(rejects, (each) => each.code)) {
        metrics.rejected(source.name, code, ofCode.length);
        logRejected(logger, code, ofCode);
      }
    },
    whyWaits,
    isSteady,
    keepTrying: keepTryingWhileDraining,
    stopping,
    onWait: reportWait,
  });
}

function tryToRead(record: LogRecord, source: NamedSource, clusterId: string): ReadRecord {
  try {
    const message = readRecord(record.stored, source, { ...record, clusterId });
    return { kind: 'message', record, message };
  } catch (error) {
    return { kind: 'refused', record, error };
  }
}

async function acceptAll(
  { gateway }: IngestParts,
  resolveUids: ResolveUids,
  messages: readonly IngestedMessage[],
  takeTurn: TakeTurn,
): Promise<RecordOutcome[]> {
  const requests = [];
  for (const message of messages) {
    const { companyId, eventType, payload, tags, key, bodyHash, traceparent, place } = message;
    const { deliverAtMs, expiresAtMs, retentionDays } = message;
    const named = { appId: message.appId, webhookId: message.webhookId };
    const { appId, webhookId = '' } = await resolveUids(named, { companyId });
    requests.push({
      companyId,
      address:
        appId === undefined
          ? { kind: 'webhook' as const, webhookId }
          : { kind: 'app' as const, appId, eventType },
      eventType,
      payload,
      requestId: place,
      ...(tags.length > 0 && { tags }),
      deliverAtMs,
      expiresAtMs,
      retentionDays,
      mayBeLate: true as const,
      traceparent,
      idempotency: { key, bodyHash, ingestedFrom: place },
    });
  }
  const outcomes = await gateway.acceptMany(requests, { takeTurn, isInOrder: true });
  return outcomes.map(toRecordOutcome);
}

function toRecordOutcome(outcome: AcceptOutcome): RecordOutcome {
  switch (outcome.kind) {
    case 'accepted':
      return { kind: 'accepted', isNew: true };
    case 'replayed':
      return { kind: 'accepted', isNew: false };
    case 'failed': {
      const { error } = outcome;
      // A fault of ours is refused: it would stop the partition for good, and the record can be replayed.
      return { kind: isTemporary(error) && !isFault(error) ? 'waits' : 'refused', error };
    }
  }
}

function countsOf(outcomes: readonly RecordOutcome[]): { isNew: number; repeated: number } {
  const accepted = outcomes.filter((each) => each.kind === 'accepted');
  const isNew = accepted.filter((each) => each.isNew).length;
  return { isNew, repeated: accepted.length - isNew };
}

function toReject({ record, error }: Refused, clusterId: string): Reject {
  const { code, message } = toApiError(error);
  const known = REJECT_CODES.find((each) => each === code) ?? 'internal_error';
  return { place: { ...record, clusterId }, code: known, message, stored: record.stored };
}

/** One line for each batch and code: a producer can write any number of bad records. */
export function logRejected(
  logger: Pick<Logger, 'error' | 'warn'>,
  code: RejectCode,
  rejects: readonly (Reject & Pick<Refused, 'error'>)[],
): void {
  const [first] = rejects;
  if (!first) return;
  const { place, message: firstMessage, error } = first;
  const { topic, partition, offset: firstOffset } = place;
  const fields = { code, topic, partition, firstOffset, records: rejects.length, firstMessage };
  if (code === 'internal_error') logger.error({ err: error, ...fields }, 'records rejected');
  else logger.warn(fields, 'records rejected');
}

/**
 * A former owner of the partition may be about to store the message of its claim: an insert that it has sent is executed
 * within milliseconds, or as soon as a frozen MongoDB continues.
 */
const SEEN_TWICE_AFTER_MS = 1_000;

interface FreeClaimsDeps {
  messages: Pick<KeyHolders, 'findKeyHolders' | 'releaseKeys'>;
  nowMs: () => number;
  areDaysSpread: () => boolean;
  stopping: AbortSignal;
  waitMs?: number;
}

/** See LaneDeps.freeClaims. Rejects when a claim has to wait until it is over (`mayTakeOver`). */
export function createFreeClaims({
  messages: { findKeyHolders, releaseKeys },
  nowMs,
  areDaysSpread,
  stopping,
  waitMs = SEEN_TWICE_AFTER_MS,
}: FreeClaimsDeps): LaneDeps['freeClaims'] {
  async function findUnstored(
    companyId: string,
    records: readonly IngestedMessage[],
  ): Promise<{ key: string; found: ClaimedKey }[]> {
    const keys = records.map(({ key }) => key);
    const holders = await findKeyHolders(companyId, keys);
    return records.flatMap(({ key, place }) => {
      const found = holders.get(key);
      return found?.kind === 'claimed' && found.ingestedFrom === place ? [{ key, found }] : [];
    });
  }

  return async (companyId, records) => {
    const before = await findUnstored(companyId, records);
    if (before.length === 0) return;
    await pause(waitMs, stopping);
    if (stopping.aborted) throw new StoppedError('stopped before the claims were free');
    const claimedFor = new Map(before.map(({ key, found }) => [key, found.claimedFor]));
    const now = await findUnstored(companyId, records);
    const at = { nowMs: nowMs(), areDaysSpread: areDaysSpread() };
    const free = now.filter(
      ({ key, found }) => claimedFor.get(key) === found.claimedFor && mayTakeOver(found, at),
    );
    await releaseKeys(companyId, free);
    if (free.length < now.length) throw new Error('a claim of the same record is not over yet');
  };
}

/** How long the status of a company is cached: as long as an API key of it. */
const STATUS_FOR_MS = 2_000;

/** Returns what `whyWaits` of LaneDeps is. */
function createWhyWaits({ clock, life, monotonicMs }: IngestParts): LaneDeps['whyWaits'] {
  /** By company: as many as there are sources. */
  const known = new Map<string, { untilMs: number; status: ReturnType<typeof life.statusOf> }>();
  return async ({ companyId }) => {
    if (!clock.isRight()) return 'clock_wrong';
    let cached = known.get(companyId);
    if (!cached || cached.untilMs <= monotonicMs()) {
      cached = { untilMs: monotonicMs() + STATUS_FOR_MS, status: life.statusOf(companyId) };
      known.set(companyId, cached);
      cached.status.catch(() => known.delete(companyId));
    }
    const status = await cached.status;
    return status === 'active' || status === null ? null : 'company_suspended';
  };
}

/** A topic that waits is logged at once, and then every minute at most. */
const LOG_WAIT_EVERY_MS = 60_000;

export function createWaitReport(
  logger: Pick<Logger, 'warn'>,
  monotonicMs: () => number,
): LaneDeps['onWait'] {
  /** By topic: as many as there are sources. */
  const loggedAtMs = new Map<string, number>();
  return ({ topic, partition, offset }, error) => {
    if (monotonicMs() - (loggedAtMs.get(topic) ?? -Infinity) < LOG_WAIT_EVERY_MS) return;
    loggedAtMs.set(topic, monotonicMs());
    logger.warn({ err: error, topic, partition, offset }, 'records of a source wait, retrying');
  };
}
