import type { ConsumerGroup } from '@posthorn/domain/records/consumer-groups.ts';
import type { DeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import { openProvenRecords } from '@posthorn/platform/proof/open-proven-records.ts';
import { openRecordLog, type OpenRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { ConsumeOptions, Consumption } from '@posthorn/platform/kafka/record-log.ts';
import {
  createMemoryBudgets,
  type MemoryBudgets,
} from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { openMongo } from '@posthorn/platform/mongo/connection/connect.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { watchDependencies } from '@posthorn/platform/service/metrics.ts';
import { openOpsServer } from '@posthorn/platform/service/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openSpans } from '@posthorn/platform/tracing/open-spans.ts';
import { openAttemptStats } from '@posthorn/platform/stats/open-stats.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createAttemptDelivery } from './attempt-delivery.ts';
import type { DispatcherConfig } from './config.ts';
import { createDispatcherMetrics } from './dispatcher-metrics.ts';
import { openIsolation, type Isolation } from './isolation/open-isolation.ts';
import { openLiveAnnouncements } from './live/open-live-announcements.ts';
import { openCompanies, type Companies } from './load/open-companies.ts';
import { openPayloads } from './load/open-payloads.ts';
import { openWebhookLoader } from './load/open-webhook-loader.ts';
import { createMakeAttempt } from './make-attempt.ts';
import { openDoubleSendGuard, type OpenDoubleSendGuard } from './once/open-double-send-guard.ts';
import { openSharedState, type SharedState } from './open-shared-state.ts';
import { createReadingReporter, startReporting } from './report-reading.ts';
import { openSender } from './sending/open-sender.ts';
import { openSettle } from './settle/open-settle.ts';
import type { AnnounceAttempt } from './settle/settle-delivery.ts';
import { createTakeOver, type TakeOver } from './once/take-over-partitions.ts';
import { createTraceAttempts, type TraceAttempts } from './settle/trace-attempts.ts';
import { createOutageWatch } from './outages/watch-outages.ts';

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
    makeAttempt: createMakeAttempt({
      loadWebhook,
      send: traces ? traces.send(send) : send,
      tokens,
      proxyRetryMs: context.config.CIRCUIT_RESET_MS,
      nowMs: systemClockMs,
    }),
    moveToSlowLane: isolation.moveToSlowLane,
    defer: isolation.defer,
    settleDelivery: traces ? traces.settle(settleDelivery) : settleDelivery,
    settleResend: traces ? traces.settle(settleResend) : settleResend,
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
