import { randomUUID } from 'node:crypto';
import type { TopicNames } from '@posthorn/domain/topics.ts';
import { createDeadLetters } from '@posthorn/platform/dead-letters.ts';
import { openRecordLog } from '@posthorn/platform/kafka/open-record-log.ts';
import type { Consumption, LogRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { watchDependencies } from '@posthorn/platform/metrics.ts';
import { openMongo } from '@posthorn/platform/mongo/connect.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createLeaseStore } from '@posthorn/platform/mongo/leases.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/publishers.ts';
import { openOpsServer } from '@posthorn/platform/ops-server.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import type { mongo } from 'mongoose';
import type { RetryConfig } from './config.ts';
import { postponementMs } from './hold-until-due.ts';
import { createParkFailure } from './park-failure.ts';
import { createReleaseParked } from './release-parked.ts';
import { createRetryMetrics } from './retry-metrics.ts';
import { createSweeper, type SweepDeps } from './sweep-unpublished.ts';

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
  const release = createReleaseParked({
    ...wires,
    retryDueTopic,
  });
  consumptions.push(
    await consumeFailures(context, wires, park),
    ...(await consumeParked(context, wires, release)),
  );
  startSweeper(context, wires, store.db);
  watchDependencies(registry, { mongodb: store.isConnected, kafka: log.isConnected });
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
  { log, delayTopics, nowMs, isJudgeable }: Wires,
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
      postponeMs: (record) => postponementMs(record, nowMs()),
      window: { high: 10_000, low: 5_000 },
      ...(name === 'long' && { maxWaitMs: IDLE_WAIT_MS }),
    });
    lifecycle.onStop(`release-${name}`, () => consumption.stop(config.DRAIN_TIMEOUT_MS));
    consumptions.push(consumption);
  }
  return consumptions;
}

function startSweeper(
  { lifecycle, logger }: Context,
  wires: Wires & Pick<SweepDeps, 'deliveries' | 'metrics'>,
  db: mongo.Db,
): void {
  const sweeper = createSweeper({
    ...wires,
    logger,
    holder: randomUUID(),
    createdTopic: wires.topics.messageCreated,
    leases: createLeaseStore(db),
    publishers: createPublisherStore(db),
    messages: createMessageStore(db),
  });
  sweeper.start();
  lifecycle.onStop('sweeper', sweeper.stop);
}
