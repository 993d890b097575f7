import { formatDelay } from '@posthorn/domain/retry-schedule.ts';
import type { TopicNames } from '@posthorn/domain/topics.ts';
import { createDeadLetters } from '@posthorn/platform/dead-letters.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { Consumption, LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { watchDependencies } from '@posthorn/platform/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhook-states.ts';
import { openOpsServer } from '@posthorn/platform/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import type { RetryConfig } from './config.ts';
import { HORIZON_MS, postponementMs } from './hold-until-due.ts';
import { createLatestRelease, type LatestRelease } from './latest-release.ts';
import { createParkFailure } from './park-failure.ts';
import { createReleaseParked } from './release-parked.ts';
import { createRetryMetrics, showParked } from './retry-metrics.ts';
import { startBackground } from './start-background.ts';
import { createOverdueWatch } from './watch-overdue.ts';

type Context = ServiceContext<RetryConfig>;

interface Wires {
  log: RecordLog;
  topics: TopicNames;
  delayTopics: ReadonlyMap<number, string>;
  nowMs: () => number;
  /** Nothing is recorded or released while the store is away. */
  isJudgeable: () => boolean;
}

/** Wires the retry service, from the stores to the consumers; what starts last stops first. */
export async function startRetry(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const store = await openMongo('posthorn-retry', context);
  const consumptions: Consumption[] = [];
  await openOpsServer(
    context,
    () =>
      lifecycle.isReady() && store.isConnected() && consumptions.every((each) => each.isRunning()),
    () => consumptions.every((each) => each.isAlive()),
  );
  const { log, topics, delayTopics } = await openRecordLog('posthorn-retry', context);
  const deliveries = createDeliveryStore(store.db);
  const metrics = createRetryMetrics(registry);
  const deadLetters = createDeadLetters(topics.deadLetters, { log, logger, registry });
  const wires = {
    log,
    topics,
    delayTopics,
    deliveries,
    metrics,
    deadLetters,
    logger,
    nowMs: systemClockMs,
    isJudgeable: store.isConnected,
  };

  const { parkedByDelayMs, retryDue: retryDueTopic } = topics;
  const park = createParkFailure({ ...wires, parkedByDelayMs, schedule: config.RETRY_DELAYS });
  const webhooks = createWebhookStates(store.db);
  const watched = watchParked(context, delayTopics);
  const release = createReleaseParked({ ...wires, ...watched, retryDueTopic, webhooks });
  consumptions.push(
    await consumeFailures(context, wires, park),
    ...(await consumeParked(context, { ...wires, ...watched }, release)),
  );
  startBackground(context, { ...wires, db: store.db });
  watchDependencies(registry, { mongodb: store.isConnected, kafka: log.isConnected });
}

function watchParked({ registry }: Context, delayTopics: Wires['delayTopics']) {
  const overdue = createOverdueWatch();
  const delayByTopic = new Map(
    [...delayTopics].map(([delayMs, topic]) => [topic, formatDelay(delayMs)]),
  );
  showParked(registry, delayByTopic, (topic) => overdue.overdueMs(topic, systemClockMs()));
  const delayMsByTopic = new Map([...delayTopics].map(([delayMs, topic]) => [topic, delayMs]));
  const monotonicMs = (): number => performance.now();
  const latestRelease = createLatestRelease({
    delayMsOf: (topic) => delayMsByTopic.get(topic) ?? Infinity,
    ...{ nowMs: systemClockMs, monotonicMs },
  });
  return { overdue, delayByTopic, latestRelease, monotonicMs };
}

/** Less than the horizon within which due records are held; asking ten times a second cost 5 % of a core. */
const IDLE_WAIT_MS = 1_000;

async function consumeFailures(
  { config, lifecycle }: Context,
  { log, topics, isJudgeable }: Wires,
  handle: (record: LogRecord) => Promise<void>,
): Promise<Consumption> {
  const consumption = await log.consume({
    groupId: `${config.TOPIC_PREFIX}retry-park`,
    topics: [topics.deliveryFailed],
    handle,
    isJudgeable,
    window: { high: 5_000, low: 2_500 },
    maxWaitMs: IDLE_WAIT_MS,
  });
  lifecycle.onStop('park', () => consumption.stop(config.DRAIN_TIMEOUT_MS));
  return consumption;
}

/** Tiers up to this delay are read apart, so that a burst there never waits behind the long ones. */
const SHORT_TIER_MAX_MS = 60_000;

/** Reads the topics of earlier schedules too, so that a changed RETRY_DELAYS strands nothing. */
async function consumeParked(
  { config, lifecycle }: Context,
  { log, delayTopics, nowMs, isJudgeable, latestRelease }: Wires & { latestRelease: LatestRelease },
  handle: (record: LogRecord) => Promise<void>,
): Promise<Consumption[]> {
  const tiers = [...delayTopics];
  const short = tiers.filter(([delayMs]) => delayMs <= SHORT_TIER_MAX_MS);
  const long = tiers.filter(([delayMs]) => delayMs > SHORT_TIER_MAX_MS);
  const consumptions: Consumption[] = [];
  for (const [name, members] of Object.entries({ short, long })) {
    if (members.length === 0) continue;
    const consumption = await log.consume({
      groupId: `${config.TOPIC_PREFIX}retry-release-${name}`,
      topics: members.map(([, topic]) => topic),
      handle,
      isJudgeable,
      postponeMs: (record, endOffset) =>
        Math.min(
          postponementMs(record, nowMs()),
          latestRelease(record, endOffset) - HORIZON_MS - performance.now(),
        ),
      window: { high: 10_000, low: 5_000 },
      ...(name === 'long' && { maxWaitMs: IDLE_WAIT_MS }),
    });
    lifecycle.onStop(`release-${name}`, () => consumption.stop(config.DRAIN_TIMEOUT_MS));
    consumptions.push(consumption);
  }
  return consumptions;
}
