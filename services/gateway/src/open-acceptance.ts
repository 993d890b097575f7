import { createIdFactory, type IdPrefix } from '@posthorn/domain/ids.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { warmUp } from '@posthorn/platform/memory/warm-up.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { UNIQUE_INDEXES } from '@posthorn/platform/mongo/create-indexes.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { type ClockWatch, openClockWatch } from '@posthorn/platform/mongo/days/watch-clock.ts';
import { awaitUniqueIndexes } from '@posthorn/platform/mongo/indexes.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { openMessageStats } from '@posthorn/platform/mongo/messages/write-stats.ts';
import { createReadAppTargets } from '@posthorn/platform/mongo/webhooks/app-targets.ts';
import { readRecentUse } from '@posthorn/platform/mongo/messages/recent-use.ts';
import { createReadingPositions } from '@posthorn/platform/redis/reading-positions.ts';
import { createVault, type Vault } from '@posthorn/platform/security/vault.ts';
import { monotonicClockMs as monotonicMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openSpans, type Spans } from '@posthorn/platform/service/spans.ts';
import { randomBytes } from 'node:crypto';
import { createAcceptMessages } from './accept/accept-message.ts';
import { traceAccept } from './accept/trace-accept.ts';
import { createSealedResponses } from './accept/build-message.ts';
import { createKeyedAccept } from './accept/idempotency.ts';
import { createUndecidedReport } from './accept/select-targets.ts';
import { createTargetResolver, type TargetResolver } from './accept/targets.ts';
import { createCatalogueReads } from './catalogue/message-policy.ts';
import { createPayloadChecks, type PayloadChecks } from './catalogue/payload-checks.ts';
import { type OpenRedis, openRedis } from '@posthorn/platform/redis/open-redis.ts';
import { type Caches, openCaches } from './caches.ts';
import type { IngestConfig } from './config.ts';
import type { Gateway } from './gateway.ts';
import { READ_WITHIN_MS } from './http/request-deadlines.ts';
import { createRateLimits, type Limits, type RateLimits } from './limits/rate-limits.ts';
import { type Slices, startSlices } from './limits/slices.ts';
import type { Throttle } from './limits/throttle.ts';
import { createOutbox, type Outbox, watchUnpublished } from './outbox/outbox.ts';
import {
  createFollowReaders,
  createPublishBudget,
  createPublishPace,
} from './outbox/publish-budget.ts';
import { createNotStored } from './projects/apps.ts';
import { createUids, type Uids } from './projects/uids.ts';

/** Both processes that accept messages read these settings: gateways, and those that ingest topics. */
type Context = ServiceContext<IngestConfig>;

/** The connections of a process that accepts messages, and what every part of it shares. */
export interface Basis {
  context: Context;
  /** The bound of a part of this process, in bytes. */
  shareOf: (part: AcceptingPart) => number;
  db: Database;
  /** The same database for requests, whose reads end in MongoDB when they have worked for too long. */
  requestDb: Database;
  isMongoConnected: () => boolean;
  clock: ClockWatch;
  /** The time of the database, in milliseconds since 1970: all of these processes agree on the age of a message. */
  nowMs: () => number;
  /** The earlier one of that and of this process's time. */
  earlierMs: () => number;
  /** The one id factory of this process, by that time. */
  newId: (prefix: IdPrefix) => string;
  kafka: OpenRecordLog;
  redis: OpenRedis;
  caches: Caches;
  vault: Vault;
  budgets: MemoryBudgets;
  /** Null when nothing is traced. */
  spans: Spans | null;
  slices: Slices;
  throttle: Throttle;
}

/** The parts that hold memory both in a gateway and where topics are ingested. */
type AcceptingPart =
  'accept_queue' | 'publish_queue' | 'target_cache' | 'rate_counts' | 'stats' | 'uid_cache';

/** Opens the connections. `name` is that of the process, as Kafka, MongoDB and traces show it. */
export async function openBasis(context: Context, owner: 'gateway' | 'ingest'): Promise<Basis> {
  const name = `posthorn-${owner}`;
  const { config, lifecycle, registry } = context;
  const spans = await openSpans(name, context);
  const mongo = await openMongo(name, context);
  const { nowMs, earlierMs } = mongo.time;
  const newId = createIdFactory({ nowMs, randomBytes });
  const clock = openClockWatch(context, { nowMs, newId });
  await openOpsServer(context, () => lifecycle.isReady() && mongo.isConnected() && clock.isRight());
  await awaitUniqueIndexes(context, mongo.db, UNIQUE_INDEXES);
  const kafka = await openRecordLog(name, context, nowMs);
  const redis = openRedis(context);
  watchDependencies(registry, {
    mongodb: mongo.isConnected,
    kafka: kafka.records.isConnected,
    redis: redis.isConnected,
  });
  return {
    context,
    shareOf: (part) => memoryShare(owner, part, config.MEMORY_MIB),
    db: mongo.db,
    requestDb: mongo.withReadsWithin(READ_WITHIN_MS),
    isMongoConnected: mongo.isConnected,
    clock,
    nowMs,
    earlierMs,
    newId,
    kafka,
    redis,
    caches: openCaches(context, mongo.connection, redis),
    vault: createVault(config.ENCRYPTION_KEYS),
    budgets: createMemoryBudgets(registry),
    spans,
    ...startSlices(monotonicMs),
  };
}

/** Opens these limits, which share their counts with other processes until this one stops. */
export function openRateLimits(
  { context, redis, budgets, shareOf, nowMs }: Basis,
  limits: Limits,
): RateLimits {
  const { config, logger, registry, lifecycle } = context;
  const countsBytes = shareOf('rate_counts');
  const rateLimits = createRateLimits({
    redis: redis.client,
    prefix: config.REDIS_PREFIX,
    limits,
    countsBytes,
    registry,
    logger,
    nowMs,
  });
  budgets.add('rate_counts', countsBytes, rateLimits.usedBytes);
  rateLimits.start();
  lifecycle.onStop('rate limits', rateLimits.stop);
  return rateLimits;
}

export function openUids({ requestDb: db, caches, budgets, shareOf }: Basis): Uids {
  const { areChangesFollowed } = caches;
  const cacheBytes = shareOf('uid_cache');
  const uids = createUids({ db, cacheBytes, areChangesFollowed });
  caches.add('uids', uids.cache);
  budgets.add('uid_cache', cacheBytes, () => uids.cache.usedSize());
  return uids;
}

/** How often the reading positions are read: as often as dispatchers report them. */
const READERS_EVERY_MS = 200;

/** Opens the outbox. It registers this process before the process stores its first message. */
export async function openOutbox({
  context,
  db,
  kafka,
  redis,
  budgets,
  spans,
  throttle,
  shareOf,
  nowMs,
  newId,
}: Basis): Promise<Outbox> {
  const { config, logger, lifecycle, registry } = context;
  const publishQueueBytes = shareOf('publish_queue');
  const topic = kafka.topics.messageCreated;
  const partitionOf = (webhookId: string): number => kafka.partitionOf(topic, webhookId);
  const brokerAheadMs = (partition: number): number => kafka.brokerClocks.aheadMs(topic, partition);
  const budget = createPublishBudget({ partitionOf, brokerAheadMs, monotonicMs });
  const outbox = createOutbox({
    topic,
    records: kafka.records,
    messages: createMessageStore(db),
    publishers: createPublisherStore(db),
    publishQueueBytes,
    pace: createPublishPace({
      pauseMs: throttle.pauseMs,
      after: (ms, run) => void setTimeout(run, ms),
    }),
    budget,
    spans,
    newId,
    logger,
    nowMs,
    monotonicMs,
  });
  budgets.add('publish_queue', publishQueueBytes, () => outbox.usedBytes() + budget.usedBytes());
  await outbox.start();
  const positions = createReadingPositions(redis.client, config.REDIS_PREFIX, nowMs);
  const { releaseWaiting } = outbox;
  const run = createFollowReaders({ budget, positions, releaseWaiting, nowMs: monotonicMs });
  const readers = createLoop({ name: 'reading positions', everyMs: READERS_EVERY_MS, run, logger });
  readers.start();
  lifecycle.onStop('reading positions', () => void readers.stop());
  lifecycle.onStop('outbox', () => outbox.stop(config.DRAIN_TIMEOUT_MS));
  watchUnpublished(registry, outbox);
  return outbox;
}

/** Opens the check of payloads, whose worker thread starts with the first one. */
export function openPayloadChecks({ context, throttle }: Basis): PayloadChecks {
  const { registry, logger, lifecycle } = context;
  const { charge } = throttle;
  const checks = createPayloadChecks({ registry, logger, charge, monotonicMs });
  lifecycle.onStop('payload checks', () => checks.close());
  return checks;
}

/** Opens the look-ups of targets, with their cache, which has the apps that were used last. */
async function openTargets(basis: Basis, webhooks: Gateway['webhooks']): Promise<TargetResolver> {
  const { context, requestDb, vault, budgets, caches, shareOf } = basis;
  const { config, logger, registry } = context;
  const cacheBytes = shareOf('target_cache');
  const targets = createTargetResolver({
    cacheBytes,
    maxTargets: config.QUOTA_TARGETS_PER_MESSAGE,
    webhooks,
    readApps: createReadAppTargets(requestDb, vault),
    notStoredByApp: createNotStored(requestDb),
    ...createCatalogueReads(requestDb),
    areChangesFollowed: caches.areChangesFollowed,
    changesOfUnknownApps: caches.changesOfUnknownApps,
    onUndecided: createUndecidedReport({ registry, logger, monotonicMs }),
    monotonicMs,
  });
  budgets.add('target_cache', cacheBytes, () => targets.cache.usedSize());
  caches.add('targets', targets.cache);
  await warmUp({
    name: 'targets',
    whenFollowed: caches.whenFollowed,
    read: async () => (await readRecentUse(requestDb)).apps,
    load: ({ companyId, appId }) =>
      targets.candidatesOf(companyId, { kind: 'app', appId, eventType: null }).catch(() => null),
    isFull: () => targets.cache.usedSize() > cacheBytes / 2,
    logger,
  });
  return targets;
}

/** Opens the acceptance of messages, with its memory budgets. A stop waits for the running inserts. */
export async function openAccept(
  basis: Basis,
  {
    webhooks,
    messages,
    payloadChecks,
  }: Pick<Gateway, 'webhooks' | 'messages'> & { payloadChecks: PayloadChecks },
  outbox: Outbox,
): Promise<Pick<Gateway, 'acceptMany' | 'hasRoomToAccept' | 'acceptOne'>> {
  const { context, db, vault, budgets, spans, shareOf, nowMs, newId } = basis;
  const { config, logger, lifecycle, registry } = context;
  const responses = createSealedResponses(vault);
  const acceptQueueBytes = shareOf('accept_queue');
  const targets = await openTargets(basis, webhooks);
  const untraced = createAcceptMessages({
    targets,
    checks: payloadChecks,
    outbox,
    counts: openMessageStats(context, { db, budgets, budgetBytes: shareOf('stats') }),
    publisherId: outbox.publisherId,
    responses,
    retentionMs: db.days.retentionMs,
    acceptQueueBytes,
    maxLingerMs: config.ACCEPT_LINGER_MS,
    newId,
    nowMs,
    monotonicMs,
    logger,
  });
  const accept = spans ? traceAccept(untraced.accept, spans, nowMs) : untraced.accept;
  budgets.add('accept_queue', acceptQueueBytes, untraced.usedBytes);
  lifecycle.onStop('accept', untraced.idle);
  const keyed = createKeyedAccept({ accept, messages, webhooks, responses, outbox, registry });
  return { hasRoomToAccept: untraced.hasRoom, ...keyed };
}
