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
import { systemClockMs, systemIds } from '@posthorn/platform/system.ts';
import type { RetryConfig } from './config.ts';
import { postponementMs } from './hold-until-due.ts';
import { createParkFailure } from './park-failure.ts';
import { createReleaseParked } from './release-parked.ts';
import { createRetryMetrics } from './retry-metrics.ts';
import { createSweeper, type Sweeper } from './sweep-unpublished.ts';

type Context = ServiceContext<RetryConfig>;

interface Wires {
  log: RecordLog;
  topics: TopicNames;
  nowMs: () => number;
}

/** Wires the retry service, from the stores to the consumers; what starts last stops first. */
export async function startRetry(context: Context): Promise<void> {
  const { config, logger, lifecycle, registry } = context;
  const mongo = await openMongo('posthorn-retry', context);
  const { log, topics } = await openRecordLog('posthorn-retry', context);
  const deliveries = createDeliveryStore(mongo.db);
  const metrics = createRetryMetrics(registry);
  const deadLetters = createDeadLetters(topics.deadLetters, { log, logger, registry });
  const wires = { log, topics, deliveries, metrics, deadLetters, logger, nowMs: systemClockMs };

  const { parkedByDelayMs, retryDue: retryDueTopic } = topics;
  const park = createParkFailure({ ...wires, parkedByDelayMs, schedule: config.RETRY_DELAYS });
  const release = createReleaseParked({
    ...wires,
    retryDueTopic,
    stopping: lifecycle.stopping,
  });
  const consumptions = [
    await consumeFailures(context, wires, park),
    ...(await consumeParked(context, wires, release)),
  ];
  startSweeper(
    context,
    createSweeper({
      ...wires,
      holder: systemIds('gw'),
      createdTopic: topics.messageCreated,
      leases: createLeaseStore(mongo.db),
      publishers: createPublisherStore(mongo.db),
      messages: createMessageStore(mongo.db),
    }),
  );
  watchDependencies(registry, { mongodb: mongo.isConnected, kafka: log.isConnected });
  await openOpsServer(
    context,
    () =>
      lifecycle.isReady() && mongo.isConnected() && consumptions.every((each) => each.isRunning()),
  );
}

async function consumeFailures(
  { config, lifecycle }: Context,
  { log, topics }: Wires,
  handle: (record: LogRecord) => Promise<void>,
): Promise<Consumption> {
  const consumption = await log.consume({
    groupId: `${config.TOPIC_PREFIX}retry-park`,
    topics: [topics.deliveryFailed],
    handle,
    window: { high: 5_000, low: 2_500 },
  });
  lifecycle.onStop('park', () => consumption.stop(config.DRAIN_TIMEOUT_MS));
  return consumption;
}

/** Tiers up to this delay are read apart, so that a burst there never waits behind the long ones. */
const SHORT_TIER_MAX_MS = 60_000;

async function consumeParked(
  { config, lifecycle }: Context,
  { log, topics, nowMs }: Wires,
  handle: (record: LogRecord) => Promise<void>,
): Promise<Consumption[]> {
  const tiers = [...topics.parkedByDelayMs];
  const short = tiers.filter(([delayMs]) => delayMs <= SHORT_TIER_MAX_MS);
  const long = tiers.filter(([delayMs]) => delayMs > SHORT_TIER_MAX_MS);
  const consumptions: Consumption[] = [];
  for (const [name, members] of Object.entries({ short, long })) {
    if (members.length === 0) continue;
    const consumption = await log.consume({
      groupId: `${config.TOPIC_PREFIX}retry-release-${name}`,
      topics: members.map(([, topic]) => topic),
      handle,
      postponeMs: (record) => postponementMs(record, nowMs()),
      window: { high: 10_000, low: 5_000 },
    });
    lifecycle.onStop(`release-${name}`, () => consumption.stop(config.DRAIN_TIMEOUT_MS));
    consumptions.push(consumption);
  }
  return consumptions;
}

function startSweeper({ lifecycle }: Context, sweeper: Sweeper): void {
  sweeper.start();
  lifecycle.onStop('sweeper', sweeper.stop);
}
