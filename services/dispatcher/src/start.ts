import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { warmUp } from '@posthorn/platform/memory/warm-up.ts';
import { readRecentUse } from '@posthorn/platform/mongo/messages/recent-use.ts';
import { isId } from '@posthorn/domain/ids.ts';
import type { ConsumerGroup } from '@posthorn/domain/records/topics.ts';
import { startTicker } from '@posthorn/platform/async/loop.ts';
import { pause } from '@posthorn/platform/async/pause.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/kafka-record-log.ts';
import type { ConsumeOptions, Consumption } from '@posthorn/platform/kafka/record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import { createSigningKeyStore } from '@posthorn/platform/mongo/companies/signing-keys.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createPayloadErasure } from '@posthorn/platform/mongo/messages/erase-payloads.ts';
import { createFilterCancellations } from '@posthorn/platform/mongo/messages/filter-cancellations.ts';
import { createRequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { openAttemptStats } from '@posthorn/platform/mongo/messages/write-stats.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { openProvenRecords } from '@posthorn/platform/records/proven-records.ts';
import { measureCommands } from '@posthorn/platform/redis/commands.ts';
import { connectRedis, redisAccessOf, type RedisClient } from '@posthorn/platform/redis/connect.ts';
import {
  type FollowedChanges,
  followChanges,
  mayHaveChanged,
} from '@posthorn/platform/mongo/follow-changes.ts';
import { listenForInvalidations } from '@posthorn/platform/redis/invalidations.ts';
import { createLiveAttempts } from '@posthorn/platform/redis/live-attempts.ts';
import { createReadingPositions } from '@posthorn/platform/redis/reading-positions.ts';
import { createRunningAttempts } from '@posthorn/platform/redis/running-attempts.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { createCacheMetrics, watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openSpans } from '@posthorn/platform/service/spans.ts';
import { createVault } from '@posthorn/platform/security/vault.ts';
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import {
  createLiveAnnouncements,
  createReadingReporter,
  type ReadingReporter,
  REPORT_READING_EVERY_MS,
} from './announce.ts';
import { ANNOUNCED_WITHIN_MS, AttemptLeases } from './attempt/attempt-leases.ts';
import { type AttemptDeps, createAttemptDelivery } from './attempt/attempt.ts';
import { type Cancellations, openCancellations } from './cancellations.ts';
import { type Companies, createCompanies } from './companies.ts';
import { type ErasedMessages, openErasedMessages } from './erased-messages.ts';
import { type DispatcherConfig } from './config.ts';
import { createDefer, createMoveToSlowLane } from './defer.ts';
import { type Isolation, startIsolation } from './start-isolation.ts';
import { createDispatcherMetrics, type DispatcherMetrics, watchConnections } from './metrics.ts';
import { createOutageFreeClock, createOutageWatch } from './outages.ts';
import {
  createCheckRecorded,
  createDoubleSendGuard,
  createTakeOver,
  type DoubleSendGuard,
  type EnterRecord,
  type TakeOver,
} from './attempt/prevent-double-send.ts';
import { createSender } from './sending/sender.ts';
import { Sequences } from './order/sequences.ts';
import {
  type AnnounceAttempt,
  createErasePayloads,
  createPublishDisabling,
  createRecordAttempts,
  createSettleDelivery,
  createSettleResend,
} from './settle.ts';
import { openStoredSequences } from './order/stored-sequences.ts';
import { createTraceAttempts } from './attempt/trace-attempts.ts';
import {
  changedSourceOf,
  createSigningKeyLoader,
  createWebhookLoader,
  orderingOf,
  SIGNER_CACHE_BYTES,
  type WebhookLoader,
} from './webhooks.ts';

type Context = ServiceContext<DispatcherConfig>;
type ProvenRecords = ReturnType<typeof openProvenRecords>;

/** The stores, Kafka and the counters, which every part of the dispatcher is made of. */
interface Base extends Context, ProvenRecords {
  kafka: Pick<OpenRecordLog, 'topics' | 'groups' | 'partitionOf'>;
  db: Database;
  time: DatabaseTime;
  /** The changes of what this process caches. */
  changes: FollowedChanges;
  /** Shared with other dispatchers and gateways; it may be away at any time. */
  redis: RedisClient;
  budgets: MemoryBudgets;
  metrics: DispatcherMetrics;
  isUp: Record<'mongodb' | 'kafka' | 'redis', () => boolean>;
  /** False while a store or Kafka fails. */
  areStoresUp: () => boolean;
}

/** Wires the dispatcher, from the stores to the consumers. What starts last stops first. */
export async function startDispatcher(given: Context): Promise<void> {
  const spans = await openSpans('posthorn-dispatcher', given);
  const consumptions: Consumption[] = [];
  const base = await connect(given, consumptions);
  const companies = await startCompanies(base);
  const isolation = startIsolation(base);
  const erased = await startErasedMessages(base, isolation);
  const webhooks = createLoader(base, erased);
  await loadUsedLast(base, webhooks);
  const cancellations = await startCancellations(base);
  const leases = startLeases(base);
  const traces = spans && createTraceAttempts(spans, systemClockMs);
  const parts = { isolation, webhooks, leases, companies, erased, cancellations, traces };
  const takeOver = createTakeOver({
    takeOverEndpoints: isolation.takeOver,
    handOverAttempts: () => {
      leases.announceAll();
    },
    takeOverAttempts: () => wait(ANNOUNCED_WITHIN_MS),
    enter: createAttempt(base, parts),
    messageCreatedTopic: base.kafka.topics.messageCreated,
    reading: startReportingReading(base),
  });
  consumptions.push(...(await consume(base, isolation, takeOver)));
  watchDependencies(base.registry, base.isUp);
}

const FOLLOWED = [
  'companies',
  'apps',
  'webhooks',
  'signingKeys',
  'requestedErasures',
  'filterCancellations',
] as const;

/** Connects to the stores and Kafka. The ops server reports the state of the consumptions from then on. */
async function connect(given: Context, consumptions: readonly Consumption[]): Promise<Base> {
  const { config, logger, lifecycle, registry } = given;
  const outages = createOutageWatch(registry);
  const context: Context = {
    ...given,
    keepTrying: outages.watch(given.keepTrying),
    keepTryingWhileDraining: outages.watch(given.keepTryingWhileDraining),
  };
  const { db, time, connection, isConnected } = await openMongo('posthorn-dispatcher', context);
  await openOpsServer(
    context,
    () => lifecycle.isReady() && isConnected() && consumptions.every((each) => each.isRunning()),
    () => consumptions.every((each) => each.isAlive()),
  );
  const kafka = await openRecordLog('posthorn-dispatcher', context, time.nowMs);
  const proven = openProvenRecords(context, kafka);
  const { records } = proven;
  const redis = measureCommands(registry, connectRedis(redisAccessOf(config), logger));
  lifecycle.onStop('redis', () => {
    redis.disconnect();
  });
  return {
    ...context,
    ...proven,
    kafka,
    db,
    time,
    changes: followChanges(context, connection, FOLLOWED),
    redis,
    budgets: createMemoryBudgets(registry),
    metrics: createDispatcherMetrics(registry),
    isUp: {
      mongodb: isConnected,
      kafka: records.isConnected,
      redis: () => redis.status === 'ready',
    },
    areStoresUp: () => isConnected() && records.isConnected() && !outages.isOutage(),
  };
}

/** Resolves when the suspended companies are known: before that nothing may be sent. */
async function startCompanies(base: Base): Promise<Companies> {
  const { db, changes, keepTrying, logger, lifecycle, time } = base;
  const life = createCompanyLife(db, time.nowMs);
  const suspended = await keepTrying('read the suspended companies', life.listSuspended);
  const areChangesFollowed = changes.isCurrent;
  const deps = { life, suspended, areChangesFollowed, keepTrying, logger };
  const companies = createCompanies(deps);
  changes.listen(({ collection }) => {
    if (collection === 'companies') companies.forget();
  }, companies.forget);
  companies.start();
  lifecycle.onStop('suspended companies', companies.stop);
  return companies;
}

/** Resolves when the erased messages are known, which may not be sent. */
async function startErasedMessages(
  base: Base,
  { forgetPayload }: Pick<Isolation, 'forgetPayload'>,
): Promise<ErasedMessages> {
  const { db, changes, lifecycle } = base;
  const erased = await openErasedMessages({
    ...base,
    erasures: createRequestedErasures(db),
    forgetPayload,
    areChangesFollowed: changes.isCurrent,
  });
  changes.listen(({ collection, id, isRemoved }) => {
    if (collection !== 'requestedErasures') return;
    if (isRemoved) erased.remove(id);
    else erased.add(id);
  }, erased.refresh);
  // One that was noted while they were read may have been reported before anybody listened.
  erased.refresh();
  erased.start();
  lifecycle.onStop('erased messages', erased.stop);
  return erased;
}

/** Resolves when the cancellations by filter are known: nothing that they select may be sent. */
async function startCancellations(base: Base): Promise<Cancellations> {
  const { db, changes, lifecycle, time } = base;
  const cancellations = await openCancellations({
    ...base,
    cancellations: createFilterCancellations(db),
    areChangesFollowed: changes.isCurrent,
    nowMs: time.nowMs,
  });
  changes.listen((change) => {
    // The work changes one with each page.
    const isOne = change.collection === 'filterCancellations';
    if (isOne && mayHaveChanged(change, 'stopsUntil')) cancellations.refresh();
  }, cancellations.refresh);
  // One that began while they were read may have been reported before anybody listened.
  cancellations.refresh();
  cancellations.start();
  lifecycle.onStop('cancellations by filter', cancellations.stop);
  return cancellations;
}

const LEASES_EVERY_MS = 100;

function startLeases({ config, lifecycle, redis, areStoresUp }: Base): AttemptLeases {
  const { stopping } = lifecycle;
  const outageFreeClock = createOutageFreeClock({ areStoresUp, monotonicMs: monotonicClockMs });
  const leases = new AttemptLeases({
    running: createRunningAttempts(redis, config.REDIS_PREFIX, randomUUID()),
    monotonicMs: monotonicClockMs,
    outageFreeMs: outageFreeClock.countedMs,
    wait: (ms, signal) => pause(ms, signal ? AbortSignal.any([stopping, signal]) : stopping),
    isStopping: () => stopping.aborted,
  });
  const ticker = startTicker(LEASES_EVERY_MS, () => {
    outageFreeClock.tick();
    leases.tick();
  });
  lifecycle.onStop('attempt leases', () => {
    ticker.stop();
    leases.tick();
  });
  return leases;
}

interface AttemptParts {
  isolation: Isolation;
  webhooks: WebhookLoader;
  leases: AttemptLeases;
  companies: Companies;
  erased: ErasedMessages;
  cancellations: Cancellations;
  /** Null when nothing is traced. */
  traces: ReturnType<typeof createTraceAttempts> | null;
}

function createAttempt(base: Base, parts: AttemptParts): EnterRecord {
  const { config, lifecycle, registry, records, keepTrying, metrics, budgets } = base;
  const { isolation, webhooks, leases, companies, erased, traces } = parts;
  const { topics } = base.kafka;
  const { nowMs } = base.time;
  const sending = { metrics: metrics.sender, budgets, logger: base.logger, nowMs };
  const { send, tokens, shown, stop } = createSender(config, sending);
  watchConnections(registry, shown);
  lifecycle.onStop('sender', stop);
  const { settle, erasePayloads } = createSettle(base, startAnnouncing(base));
  return createAttemptDelivery({
    messageCreatedTopic: topics.messageCreated,
    slowLaneTopic: topics.slowLane,
    memory: isolation.memory,
    doubleSends: createGuard(base, leases),
    sequences: openSequences(base, parts),
    loadWebhook: webhooks.load,
    disableWebhook: webhooks.disable,
    isCompanySuspended: companies.isSuspended,
    isCompanyRemoved: companies.isRemoved,
    isErased: erased.has,
    cancellations: parts.cancellations,
    queues: isolation.queues,
    tokens,
    send: traces ? traces.send(send) : send,
    proxyRetryMs: config.CIRCUIT_RESET_MS,
    schedule: config.RETRY_DELAYS,
    settle: {
      delivery: traces ? traces.settle(settle.delivery) : settle.delivery,
      resend: traces ? traces.settle(settle.resend) : settle.resend,
    },
    erasePayloads,
    moveToSlowLane: createMoveToSlowLane({
      records,
      keepTrying,
      slowLaneTopic: topics.slowLane,
      count: metrics.countSlowLane,
    }),
    defer: createDefer({
      records,
      keepTrying,
      deferredByDelayMs: topics.deferredByDelayMs,
      count: metrics.countDeferral,
      nowMs,
    }),
    deadLetters: base.deadLetters,
    time: base.time,
    nowMs,
  });
}

/** Half of the memory of records may have followers; what comes next to that waits as a document. */
const FOLLOWERS_SHARE = 0.5;

function openSequences(base: Base, { webhooks, isolation }: AttemptParts): Sequences {
  const { topics } = base.kafka;
  const { nowMs } = base.time;
  return new Sequences({
    store: openStoredSequences({ ...base, retryDueTopic: topics.retryDue, nowMs }),
    messageCreatedTopic: topics.messageCreated,
    orderingOf: async (id) => orderingOf(await webhooks.load(id)),
    hasMemory: () => isolation.memory.usedShare() < FOLLOWERS_SHARE,
    later: (ms, run) => void setTimeout(run, ms),
    metrics: base.metrics.sequences,
    nowMs,
    monotonicMs: monotonicClockMs,
  });
}

function createGuard(
  { db, keepTrying, kafka, time }: Base,
  leases: AttemptLeases,
): DoubleSendGuard {
  const checkRecorded = createCheckRecorded({
    deliveries: createDeliveryStore(db),
    marks: createResendMarks(db),
    keepTrying,
  });
  const slowLaneTopic = kafka.topics.slowLane;
  return createDoubleSendGuard({ leases, checkRecorded, slowLaneTopic, nowMs: time.nowMs });
}

/** Attempts of watched companies are announced to the gateways, for the dashboard. */
function startAnnouncing({ config, redis, logger, lifecycle, time }: Base): AnnounceAttempt {
  const live = createLiveAttempts(redis, config.REDIS_PREFIX, time.nowMs);
  const { announce, start, stop } = createLiveAnnouncements({ live, logger });
  start();
  lifecycle.onStop('live attempts', stop);
  return announce;
}

/** Of webhooks that other dispatchers send to as well: which of them come to this one is decided later. */
function loadUsedLast(
  { config, db, changes, logger }: Base,
  webhooks: WebhookLoader,
): Promise<void> {
  const cacheBytes = memoryShare('dispatcher', 'webhook_cache', config.MEMORY_MIB);
  return warmUp({
    name: 'webhooks',
    whenFollowed: changes.whenCurrent,
    read: async () => (await readRecentUse(db)).webhookIds,
    load: webhooks.load,
    isFull: () => webhooks.cache.usedSize() > cacheBytes / 2,
    logger,
  });
}

/** The caches of webhooks and signing keys forget what has changed: at once by announcements of gateways in Redis. */
function createLoader(base: Base, erased: Pick<ErasedMessages, 'add'>): WebhookLoader {
  const { config, registry, db, changes, budgets } = base;
  const vault = createVault(config.ENCRYPTION_KEYS);
  const cacheBytes = memoryShare('dispatcher', 'webhook_cache', config.MEMORY_MIB);
  const common = { ...base, areChangesFollowed: changes.isCurrent };
  const signers = createSigningKeyLoader({
    ...common,
    signingKeys: createSigningKeyStore(db, vault),
    nowMs: base.time.nowMs,
  });
  const loader = createWebhookLoader({
    ...common,
    webhooks: createWebhookStore(db, vault),
    publishDisabling: createPublishDisabling({
      ...base,
      failedTopic: base.kafka.topics.deliveryFailed,
    }),
    loadSigner: signers.load,
    cacheBytes,
  });
  budgets.add('webhook_cache', cacheBytes, () => loader.cache.usedSize());
  budgets.add('signing_key_cache', SIGNER_CACHE_BYTES, () => signers.cache.usedSize());
  const watchCache = createCacheMetrics(registry);
  watchCache('webhooks', loader.cache);
  watchCache('signing_keys', signers.cache);
  // A new signing key is announced with the id of the company.
  const forget = (id: string): void => {
    loader.cache.forget(id);
    signers.cache.forget(id);
  };
  changes.listen(
    (change) => {
      const source = changedSourceOf(change);
      if (source !== null) forget(source);
      if (change.companyId !== null) signers.cache.forget(change.companyId);
    },
    () => {
      signers.cache.forgetAll();
      loader.cache.forgetAll();
    },
  );
  hearInvalidations(base, (id) => {
    if (isId('msg', id)) erased.add(id);
    else forget(id);
  });
  return loader;
}

function hearInvalidations(
  { config, logger, lifecycle }: Base,
  onInvalid: (id: string) => void,
): void {
  // A connection of its own, because a subscribed connection can do nothing else.
  const subscriber = connectRedis(redisAccessOf(config), logger);
  lifecycle.onStop('redis subscriber', () => {
    subscriber.disconnect();
  });
  listenForInvalidations(subscriber, config.REDIS_PREFIX, ({ id }) => {
    onInvalid(id);
  });
}

function createSettle(
  base: Base,
  announce: AnnounceAttempt,
): Pick<AttemptDeps, 'settle' | 'erasePayloads'> {
  const { config, logger, db, budgets, records, metrics, keepTryingWhileDraining } = base;
  const budgetBytes = memoryShare('dispatcher', 'stats', config.MEMORY_MIB);
  const erasePayloads = createErasePayloads({
    erasure: createPayloadErasure(db),
    keepTryingWhileDraining,
    monotonicMs: monotonicClockMs,
  });
  const both = {
    erasePayloads,
    keepTryingWhileDraining,
    metrics,
    counts: openAttemptStats(base, { db, budgets, budgetBytes }),
    announce,
    logger,
    nowMs: base.time.nowMs,
  };
  const delivery = createSettleDelivery({
    ...both,
    recordAttempts: createRecordAttempts(createDeliveryStore(db)),
    records,
    failedTopic: base.kafka.topics.deliveryFailed,
    schedule: config.RETRY_DELAYS,
    keepTrying: base.keepTrying,
  });
  const resend = createSettleResend({ ...both, marks: createResendMarks(db) });
  return { settle: { delivery, resend }, erasePayloads };
}

/** Reports to the gateways how far the fresh records are begun. */
function startReportingReading({ config, lifecycle, redis, time }: Base): ReadingReporter {
  const positions = createReadingPositions(redis, config.REDIS_PREFIX, time.nowMs);
  const reporter = createReadingReporter(positions, monotonicClockMs);
  const ticker = startTicker(REPORT_READING_EVERY_MS, reporter.tick);
  lifecycle.onStop('reading positions', ticker.stop);
  return reporter;
}

/** Added to the time of the attempt itself: a record waits for its endpoint for 30 s at most. */
const STALLED_AFTER_MS = 95_000;

/** Memory bounds the records under work; this is the bound behind it. */
const IN_FLIGHT_LIMITS = { pauseAt: 50_000, resumeAt: 45_000 };

async function consume(
  { config, lifecycle, records, kafka, isUp, areStoresUp }: Base,
  { queues, memory }: Isolation,
  takeOver: TakeOver,
): Promise<Consumption[]> {
  const common = {
    areStoresUp,
    mayHandOver: isUp.redis,
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
      ...ofGroup(kafka.groups.dispatcher),
      // No further while the records under work fill their memory, or attempts wait for all slots.
      mayRead: () => memory.hasRoom() && !queues.isFull('fast'),
      maxWaitMs: 250,
    }),
    records.consume({
      ...common,
      ...ofGroup(kafka.groups.slowLane),
      sharing: { kind: 'following' },
      // Its own slots: its backlog would fill the memory, and stop the reading for endpoints that are not slow.
      mayRead: () => memory.hasRoom() && !queues.isFull('slow'),
      // Mostly idle, so that longer polls save requests; and after it was full it is in no hurry.
      maxWaitMs: 500,
    }),
  ];
  // Before they have joined: a group waits ten seconds for a member that goes without leaving it.
  lifecycle.onStop('consumers', async () => {
    queues.close();
    const stopOnceJoined = async (each: Promise<Consumption>): Promise<void> =>
      (await each.catch(() => null))?.stop(config.DRAIN_TIMEOUT_MS);
    await Promise.all(joining.map(stopOnceJoined));
  });
  return Promise.all(joining);
}
