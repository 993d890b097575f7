import type { ConsumerGroup } from '@posthorn/domain/records/topics.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { startTicker } from '@posthorn/platform/async/loop.ts';
import type { DeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type {
  ConsumeOptions,
  Consumption,
  RecordLog,
} from '@posthorn/platform/kafka/record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createPayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { openProvenRecords } from '@posthorn/platform/records/open-proven-records.ts';
import { connectRedis, redisAccessOf } from '@posthorn/platform/redis/connect.ts';
import { measureCommands } from '@posthorn/platform/redis/commands.ts';
import {
  createEndpointFlows,
  type EndpointFlows,
} from '@posthorn/platform/redis/endpoint-flows.ts';
import { listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import { createLiveAttempts, type LiveAttempts } from '@posthorn/platform/redis/live-attempts.ts';
import { createOpenCircuits, type OpenCircuits } from '@posthorn/platform/redis/open-circuits.ts';
import {
  createReadingPositions,
  type ReadingPositions,
} from '@posthorn/platform/redis/reading-positions.ts';
import {
  createRunningAttempts,
  type RunningAttempts,
} from '@posthorn/platform/redis/running-attempts.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import {
  type CountAttempt,
  openAttemptStats,
} from '@posthorn/platform/mongo/messages/write-stats.ts';
import { openSpans } from '@posthorn/platform/service/spans.ts';
import { createVault } from '@posthorn/platform/security/vault.ts';
import type { mongo } from 'mongoose';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createReadingReporter, openLiveAnnouncements, startReporting } from './announce.ts';
import { ANNOUNCED_WITHIN_MS, createAttemptLeases } from './attempt-leases.ts';
import { createAttemptDelivery } from './attempt.ts';
import { type Companies, openCompanies } from './companies.ts';
import type { DispatcherConfig } from './config.ts';
import { type Isolation, openIsolation } from './isolation/isolation.ts';
import { createDispatcherMetrics, type DispatcherMetrics } from './metrics.ts';
import { createOutageFreeClock, createOutageWatch } from './outages.ts';
import { createPayloadLoader, createPayloadMemory, type PayloadMemory } from './payloads.ts';
import {
  createCheckRecorded,
  createDoubleSendGuard,
  createRecentIds,
  createTakeOver,
  type DoubleSendGuard,
  REMEMBERED_IDS,
  type TakeOver,
} from './prevent-double-send.ts';
import { openSender } from './sending/sender.ts';
import {
  type AnnounceAttempt,
  createErasePayloads,
  createRecordAttempts,
  createSettleDelivery,
  createSettleResend,
  type ErasePayloads,
  type Settle,
} from './settle.ts';
import { createTraceAttempts, type TraceAttempts } from './trace-attempts.ts';
import {
  createSigningKeyLoader,
  createWebhookLoader,
  type LoadWebhook,
  SIGNER_CACHE_BYTES,
} from './webhooks.ts';

type Context = ServiceContext<DispatcherConfig>;

/** Wires the dispatcher, from the stores to the consumers. What starts last stops first. */
export async function startDispatcher(given: Context): Promise<void> {
  const { lifecycle, registry } = given;
  const outages = createOutageWatch(registry);
  const context: Context = {
    ...given,
    keepTrying: outages.watch(given.keepTrying),
    keepTryingWhileDraining: outages.watch(given.keepTryingWhileDraining),
  };
  const spans = await openSpans('posthorn-dispatcher', context);
  const { db, isConnected } = await openMongo('posthorn-dispatcher', context);
  const consumptions: Consumption[] = [];
  await openOpsServer(
    context,
    () => lifecycle.isReady() && isConnected() && consumptions.every((each) => each.isRunning()),
    () => consumptions.every((each) => each.isAlive()),
  );
  const kafka = await openRecordLog('posthorn-dispatcher', context);
  const { topics, groups, partitionOf } = kafka;
  const { records, deadLetters, report } = openProvenRecords(context, kafka);
  const budgets = createMemoryBudgets(registry);
  const shared = openSharedState(context);
  const companies = await openCompanies(context, db);
  const payloads = openPayloads(context, db, budgets);
  const isolated = { records, topics, partitionOf, shared, budgets, companies, payloads, report };
  const isolation = openIsolation(context, isolated);
  const areStoresUp = (): boolean => isConnected() && records.isConnected() && !outages.isOutage();
  const doubleSends = openDoubleSendGuard(context, {
    db,
    runningAttempts: shared.runningAttempts,
    slowLaneTopic: topics.slowLane,
    areStoresUp,
  });
  const traces = spans && createTraceAttempts(spans, systemClockMs);
  const announce = openLiveAnnouncements(context, shared.liveAttempts);
  const own = { isolation, doubleSends, companies, traces, announce };
  const parts = { db, records, topics, deadLetters, budgets, ...own };
  const takeOver = createTakeOver({
    takeOverEndpoints: isolation.takeOver,
    handOverAttempts: doubleSends.handOver,
    takeOverAttempts: doubleSends.takeOver,
    attempt: openAttempt(context, parts),
  });
  const due = { records, topics, groups, shared, isolation, takeOver, areStoresUp };
  consumptions.push(...(await consumeDue(context, due)));
  watchDependencies(registry, {
    mongodb: isConnected,
    kafka: records.isConnected,
    redis: shared.isConnected,
  });
}

interface AttemptParts extends Pick<OpenRecordLog, 'records' | 'topics'> {
  db: Database;
  deadLetters: DeadLetters;
  budgets: MemoryBudgets;
  isolation: Isolation;
  doubleSends: OpenDoubleSendGuard;
  companies: Companies;
  announce: AnnounceAttempt;
  /** Null when nothing is traced. */
  traces: TraceAttempts | null;
}

function openAttempt(
  context: Context,
  parts: AttemptParts,
): ReturnType<typeof createAttemptDelivery> {
  const { db, topics, deadLetters, budgets, isolation, doubleSends, companies, traces } = parts;
  const loadWebhook = openWebhookLoader(context, db, budgets);
  const { send, tokens } = openSender(context, budgets);
  const budgetBytes = memoryShare('dispatcher', 'stats', context.config.MEMORY_MIB);
  const count = openAttemptStats(context, { db, budgets, budgetBytes });
  const { settleDelivery, settleResend, erasePayloads } = openSettle(context, {
    ...parts,
    metrics: createDispatcherMetrics(context.registry),
    count,
    failedTopic: topics.deliveryFailed,
  });
  return createAttemptDelivery({
    messageCreatedTopic: topics.messageCreated,
    slowLaneTopic: topics.slowLane,
    deadLetters,
    memory: isolation.memory,
    doubleSends,
    loadWebhook,
    isCompanyRemoved: companies.isRemoved,
    queues: isolation.queues,
    send: traces ? traces.send(send) : send,
    tokens,
    proxyRetryMs: context.config.CIRCUIT_RESET_MS,
    moveToSlowLane: isolation.moveToSlowLane,
    defer: isolation.defer,
    settle: {
      delivery: traces ? traces.settle(settleDelivery) : settleDelivery,
      resend: traces ? traces.settle(settleResend) : settleResend,
    },
    erasePayloads,
    nowMs: systemClockMs,
  });
}

interface ConsumeParts extends Pick<OpenRecordLog, 'records' | 'topics' | 'groups'> {
  shared: Pick<SharedState, 'readingPositions' | 'isConnected'>;
  isolation: Isolation;
  takeOver: TakeOver;
  areStoresUp: () => boolean;
}

/** Added to the time of the attempt itself: a record waits for its endpoint for 30 s at most. */
const STALLED_AFTER_MS = 95_000;

/** Memory bounds the records under work; this is the bound behind it. */
const IN_FLIGHT_LIMITS = { pauseAt: 50_000, resumeAt: 45_000 };

async function consumeDue(context: Context, parts: ConsumeParts): Promise<Consumption[]> {
  const { config, lifecycle } = context;
  const { records, groups, shared, isolation, areStoresUp } = parts;
  const takeOver = openReading(context, parts);
  const common = {
    areStoresUp,
    mayHandOver: shared.isConnected,
    inFlightLimits: IN_FLIGHT_LIMITS,
    stallMs: STALLED_AFTER_MS + config.DELIVERY_TIMEOUT_MS,
    onRebalancing: takeOver.onRebalancing,
    handle: takeOver.handle,
  };
  const ofGroup = (group: ConsumerGroup): ConsumerGroup & Pick<ConsumeOptions, 'onAssigned'> => ({
    ...group,
    onAssigned: (assignment) => {
      takeOver.onAssigned(group.groupId, assignment);
    },
  });
  // Together: a member that has joined one group only would have other partitions in each.
  const joining = [
    records.consume({
      ...common,
      ...ofGroup(groups.dispatcher),
      mayRead: isolation.mayRead,
    }),
    records.consume({
      ...common,
      ...ofGroup(groups.slowLane),
      sharing: { kind: 'following' },
      mayRead: isolation.mayReadSlowLane,
      // Mostly idle, so that longer polls save requests; and after it was full it is in no hurry.
      maxWaitMs: 500,
    }),
  ];
  // Before they have joined: a group waits ten seconds for a member that goes without leaving it.
  lifecycle.onStop('consumers', async () => {
    isolation.queues.close();
    await Promise.all(joining.map((each) => stopOnceJoined(each, config.DRAIN_TIMEOUT_MS)));
  });
  return Promise.all(joining);
}

/** Returns the same take-over, which also reports to the gateways how far the fresh records are begun. */
function openReading({ lifecycle }: Context, { topics, shared, takeOver }: ConsumeParts): TakeOver {
  const reporter = createReadingReporter(shared.readingPositions, monotonicClockMs);
  const reporting = startReporting(reporter);
  lifecycle.onStop('reading positions', reporting.stop);
  return {
    ...takeOver,
    onAssigned(groupId, assignment) {
      if (topics.messageCreated in assignment) reporter.forget();
      takeOver.onAssigned(groupId, assignment);
    },
    handle(record, isOurs) {
      if (record.topic === topics.messageCreated) reporter.note(record);
      return takeOver.handle(record, isOurs);
    },
  };
}

async function stopOnceJoined(joining: Promise<Consumption>, drainMs: number): Promise<void> {
  const consumption = await joining.catch(() => null);
  await consumption?.stop(drainMs);
}

/** What dispatchers and gateways share through Redis. Redis may be away at any time. */
export interface SharedState {
  openCircuits: OpenCircuits;
  endpointFlows: EndpointFlows;
  runningAttempts: RunningAttempts;
  liveAttempts: LiveAttempts;
  readingPositions: ReadingPositions;
  /** Calls `act` each time that Redis is connected, the first time included. */
  onReady: (act: () => void) => void;
  isConnected: () => boolean;
}

export function openSharedState({
  config,
  logger,
  lifecycle,
  registry,
}: ServiceContext<DispatcherConfig>): SharedState {
  const access = redisAccessOf(config);
  const redis = measureCommands(registry, connectRedis(access, logger));
  lifecycle.onStop('redis', () => {
    redis.disconnect();
  });
  return {
    openCircuits: createOpenCircuits(redis, config.REDIS_PREFIX, systemClockMs),
    endpointFlows: createEndpointFlows(redis, config.REDIS_PREFIX, systemClockMs),
    runningAttempts: createRunningAttempts(redis, config.REDIS_PREFIX, randomUUID()),
    liveAttempts: createLiveAttempts(redis, config.REDIS_PREFIX, systemClockMs),
    readingPositions: createReadingPositions(redis, config.REDIS_PREFIX, systemClockMs),
    onReady: (act) => redis.on('ready', act),
    isConnected: () => redis.status === 'ready',
  };
}

/**
 * Opens the caches of webhooks and signing keys, which forget what gateways announce as changed. The
 * announcements come on a Redis connection of their own, because a subscribed connection can do nothing else.
 */
export function openWebhookLoader(
  { config, logger, lifecycle, keepTrying }: ServiceContext<DispatcherConfig>,
  db: mongo.Db,
  budgets: MemoryBudgets,
): LoadWebhook {
  const vault = createVault(config.ENCRYPTION_KEYS);
  const cacheBytes = memoryShare('dispatcher', 'webhook_cache', config.MEMORY_MIB);
  const signers = createSigningKeyLoader({
    signingKeys: createSigningKeyStore(db, vault),
    keepTrying,
    nowMs: systemClockMs,
  });
  const loader = createWebhookLoader({
    webhooks: createWebhookStore(db, vault),
    loadSigner: signers.load,
    logger,
    cacheBytes,
    keepTrying,
  });
  budgets.add('webhook_cache', cacheBytes, loader.usedBytes);
  budgets.add('signing_key_cache', SIGNER_CACHE_BYTES, signers.usedBytes);
  const subscriber = connectRedis(redisAccessOf(config), logger);
  lifecycle.onStop('redis subscriber', () => {
    subscriber.disconnect();
  });
  listenForInvalidations(subscriber, config.REDIS_PREFIX, {
    onChange: ({ id }) => {
      loader.forget(id);
      // A rotation is announced with the id of the company.
      signers.forget(id);
    },
    onMissed: () => {
      signers.forgetAll();
      loader.forgetAll();
    },
  });
  return loader.load;
}

export function openPayloads(
  { config, keepTrying }: ServiceContext<DispatcherConfig>,
  db: Database,
  budgets: MemoryBudgets,
): PayloadMemory {
  const cacheBytes = memoryShare('dispatcher', 'payload_cache', config.MEMORY_MIB);
  const heldBytes = memoryShare('dispatcher', 'payloads', config.MEMORY_MIB);
  const loader = createPayloadLoader(createMessageStore(db), cacheBytes, keepTrying);
  const payloads = createPayloadMemory(loader.load, heldBytes);
  budgets.add('payload_cache', cacheBytes, loader.usedBytes);
  budgets.add('payloads', heldBytes, payloads.usedBytes);
  return payloads;
}

export interface OpenDoubleSendGuard extends DoubleSendGuard {
  /** Announces the attempts under way. To be called before partitions can go to another dispatcher. */
  handOver: () => void;
  /**
   * Resolves when the former owner of newly assigned partitions has announced the attempts that it
   * works on. To be awaited before the first record of those partitions is claimed.
   */
  takeOver: () => Promise<void>;
}

interface GuardParts {
  db: Database;
  runningAttempts: RunningAttempts;
  slowLaneTopic: string;
  /** False while a store or Kafka fails. */
  areStoresUp: () => boolean;
}

const TICK_EVERY_MS = 50;

export function openDoubleSendGuard(
  { lifecycle, keepTrying }: ServiceContext<DispatcherConfig>,
  { db, runningAttempts, slowLaneTopic, areStoresUp }: GuardParts,
): OpenDoubleSendGuard {
  const { stopping } = lifecycle;
  const recentIds = createRecentIds(REMEMBERED_IDS);
  const outageFreeClock = createOutageFreeClock({ areStoresUp, monotonicMs: monotonicClockMs });
  const leases = createAttemptLeases({
    running: runningAttempts,
    onReleased: recentIds.add,
    monotonicMs: monotonicClockMs,
    outageFreeMs: outageFreeClock.countedMs,
    wait: (ms, signal) => pause(ms, signal ? AbortSignal.any([stopping, signal]) : stopping),
    isStopping: () => stopping.aborted,
  });
  const ticker = startTicker(TICK_EVERY_MS, () => {
    outageFreeClock.tick();
    leases.tick();
  });
  lifecycle.onStop('attempt leases', () => {
    ticker.stop();
    leases.tick();
  });
  const guard = createDoubleSendGuard({
    leases,
    recentIds,
    checkRecorded: createCheckRecorded({
      deliveries: createDeliveryStore(db),
      marks: createResendMarks(db),
      keepTrying,
    }),
    slowLaneTopic,
    nowMs: systemClockMs,
  });
  return {
    claim: guard.claim,
    handOver: leases.announceAll,
    takeOver: () => wait(ANNOUNCED_WITHIN_MS),
  };
}

interface SettleParts {
  db: Database;
  records: RecordLog;
  metrics: DispatcherMetrics;
  count: CountAttempt;
  announce: AnnounceAttempt;
  failedTopic: string;
}

export function openSettle(
  { config, logger, keepTrying, keepTryingWhileDraining }: ServiceContext<DispatcherConfig>,
  { db, records, metrics, count, announce, failedTopic }: SettleParts,
): { settleDelivery: Settle; settleResend: Settle; erasePayloads: ErasePayloads } {
  const erasePayloads = createErasePayloads({
    erasure: createPayloadErasure(db),
    keepTryingWhileDraining,
    monotonicMs: monotonicClockMs,
  });
  return {
    erasePayloads,
    settleDelivery: createSettleDelivery({
      erasePayloads,
      recordAttempts: createRecordAttempts(createDeliveryStore(db)),
      records,
      failedTopic,
      schedule: config.RETRY_DELAYS,
      keepTrying,
      keepTryingWhileDraining,
      metrics,
      count,
      announce,
      logger,
      nowMs: systemClockMs,
    }),
    settleResend: createSettleResend({
      erasePayloads,
      marks: createResendMarks(db),
      keepTryingWhileDraining,
      metrics,
      count,
      announce,
      logger,
      nowMs: systemClockMs,
    }),
  };
}
