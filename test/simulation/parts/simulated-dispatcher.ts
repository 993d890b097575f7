import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { createDeadLetters } from '@posthorn/platform/dead-letters/dead-letters.ts';
import { keepTrying } from '@posthorn/platform/async/keep-trying.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resends/resend-marks.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhooks/webhook-states.ts';
import { createRecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import type { mongo } from 'mongoose';
import { Registry } from 'prom-client';
import { createAttemptDelivery } from '../../../services/dispatcher/src/attempt-delivery.ts';
import { createAttemptLeases } from '../../../services/dispatcher/src/once/attempt-leases.ts';
import { createDispatcherMetrics } from '../../../services/dispatcher/src/dispatcher-metrics.ts';
import { createDefer } from '../../../services/dispatcher/src/isolation/defer-attempt.ts';
import type { Admission } from '../../../services/dispatcher/src/isolation/queues/queue-state.ts';
import { createPayloadLoader } from '../../../services/dispatcher/src/load/load-payload.ts';
import type { LoadWebhook } from '../../../services/dispatcher/src/load/load-webhook.ts';
import { createMadeBefore } from '../../../services/dispatcher/src/settle/settle-if-recorded.ts';
import { createMakeAttempt } from '../../../services/dispatcher/src/make-attempt.ts';
import { createPayloadMemory } from '../../../services/dispatcher/src/load/payload-memory.ts';
import { createRecordAttempts } from '../../../services/dispatcher/src/settle/record-attempts.ts';
import {
  createSettle,
  type Settle,
} from '../../../services/dispatcher/src/settle/settle-delivery.ts';
import { createResends } from '../../../services/dispatcher/src/settle/settle-resend.ts';
import { sampleWebhook } from '../../support/samples/sample-webhook.ts';
import type { Send } from './simulated-endpoints.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import { LOGGER } from './silent.ts';
import { SCHEDULE, TOPICS, type World } from '../run/world.ts';

export interface ServiceDeps {
  world: World;
  process: SimulatedProcess;
  db: mongo.Db;
  log: RecordLog;
}

const METRICS = createDispatcherMetrics(new Registry());
const MIB = 1_048_576;
/** How far ahead of now an endpoint that cannot take an attempt has it deferred. */
const DEFER_MS = 30_000;

/** The steps of the real dispatcher as start-dispatcher.ts wires them, without Redis and without lines. */
export function createDispatcherSteps(
  deps: ServiceDeps & { send: Send },
): ReturnType<typeof createAttemptDelivery> {
  const { world, process, db, log, send } = deps;
  const common = { metrics: METRICS, logger: LOGGER, nowMs: process.nowMs };
  const deliveries = createDeliveryStore(db);
  const resends = createResends({ ...common, marks: createResendMarks(db) });
  const settleDelivery = createSettle({
    ...common,
    log,
    failedTopic: TOPICS.deliveryFailed,
    schedule: SCHEDULE,
    recordAttempts: createRecordAttempts(deliveries),
  });
  const settle: Settle = (settled) =>
    settled.due.trigger === 'resend' ? resends.settle(settled) : settleDelivery(settled);
  const loadWebhook = webhookLoader(db);
  const { load } = createPayloadLoader(createMessageStore(db), MIB);
  return createAttemptDelivery({
    topics: TOPICS,
    deadLetters: openDeadLetters(log),
    memory: createRecordMemory(64 * MIB),
    leases: openLeases(world),
    madeBefore: createMadeBefore({ deliveries, settle }),
    resendOnce: resends.once,
    loadWebhook,
    queues: { enter: () => Promise.resolve(admit(deps)) },
    makeAttempt: createMakeAttempt({
      payloads: createPayloadMemory(load, MIB),
      loadWebhook,
      send,
      nowMs: process.nowMs,
    }),
    moveToSlowLane: () => Promise.reject(new Error('no endpoint is slow here')),
    defer: createDefer({
      records: log,
      deferredByDelayMs: TOPICS.deferredByDelayMs,
      count: () => undefined,
      nowMs: process.nowMs,
    }),
    settle,
    nowMs: process.nowMs,
  });
}

export function openDeadLetters(log: RecordLog): ReturnType<typeof createDeadLetters> {
  const parts = { log, logger: LOGGER, registry: new Registry() };
  return createDeadLetters(TOPICS.deadLetters, parts);
}

/** Whether a webhook is there and enabled is read anew each time. */
function webhookLoader(db: mongo.Db): LoadWebhook {
  const states = createWebhookStates(db);
  return async (id) => {
    const found = (await keepTrying(() => states.statesOf([id]))).get(id);
    if (!found) return null;
    const webhook = sampleWebhook(0, { ...found, id, rateLimitPerSecond: null });
    return { webhook, signer: SIGNER, origin: 'https://example.com', path: '/hook' };
  };
}

const SIGNER = signerOf(sampleWebhook(0));

/** Every endpoint has room at once; now and then it cannot take an attempt now. */
function admit({ world, process }: ServiceDeps): Admission {
  if (world.random.isHit(world.plan.deferRate)) {
    return { kind: 'defer', because: 'hold', turnAtMs: process.nowMs() + DEFER_MS };
  }
  return { kind: 'turn', turn: { begin: () => true, end: () => Promise.resolve() } };
}

/** Without Redis everybody is granted everything: the most duplicates there can be. */
function openLeases({ time }: World): ReturnType<typeof createAttemptLeases> {
  return createAttemptLeases({
    running: {
      announce: () => undefined,
      withdraw: () => undefined,
      claim: () => Promise.reject(new Error('Redis is away')),
    },
    monotonicMs: time.nowMs,
    wait: (ms) => new Promise<void>((resolve) => void time.after(ms, resolve)),
  });
}
