import { signerOf } from '@posthorn/domain/delivery-headers.ts';
import { createDeadLetters } from '@posthorn/platform/dead-letters.ts';
import { keepTrying } from '@posthorn/platform/keep-trying.ts';
import type { RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/resend-marks.ts';
import { createWebhookStates } from '@posthorn/platform/mongo/webhook-states.ts';
import type { mongo } from 'mongoose';
import { Registry } from 'prom-client';
import {
  createAttemptDelivery,
  type AttemptDeps,
} from '../../services/dispatcher/src/attempt-delivery.ts';
import { createAttemptLeases } from '../../services/dispatcher/src/attempt-leases.ts';
import { createDispatcherMetrics } from '../../services/dispatcher/src/dispatcher-metrics.ts';
import { createFindTarget } from '../../services/dispatcher/src/find-target.ts';
import { createLoadPayload } from '../../services/dispatcher/src/load-payload.ts';
import type { LoadWebhook } from '../../services/dispatcher/src/load-webhook.ts';
import { createMadeBefore } from '../../services/dispatcher/src/made-before.ts';
import { createMakeAttempt } from '../../services/dispatcher/src/make-attempt.ts';
import { createPutOff } from '../../services/dispatcher/src/put-off.ts';
import { createRecordAttempts } from '../../services/dispatcher/src/record-attempts.ts';
import { createSettle, type Settle } from '../../services/dispatcher/src/settle-delivery.ts';
import { createResends } from '../../services/dispatcher/src/settle-resend.ts';
import { sampleWebhook } from '../support/sample-webhook.ts';
import type { Send } from './simulated-endpoints.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import { LOGGER } from './silent.ts';
import { SCHEDULE, TOPICS, type World } from './world.ts';

export interface ServiceDeps {
  world: World;
  process: SimulatedProcess;
  db: mongo.Db;
  log: RecordLog;
}

const METRICS = createDispatcherMetrics(new Registry());
/** How far ahead of now an open circuit puts an attempt off. */
const DEFER_MS = 30_000;

/** The steps of the real dispatcher as start-dispatcher.ts wires them, without Redis and without lines. */
export function createDispatcherSteps(
  deps: ServiceDeps & { send: Send },
): ReturnType<typeof createAttemptDelivery> {
  const { process, db, log, send } = deps;
  const common = { metrics: METRICS, logger: LOGGER, nowMs: process.nowMs };
  const deliveries = createDeliveryStore(db);
  const resends = createResends({ ...common, marks: createResendMarks(db) });
  const settleDelivery = createSettle({
    ...{ ...common, log, failedTopic: TOPICS.deliveryFailed, schedule: SCHEDULE },
    recordAttempts: createRecordAttempts(deliveries),
  });
  const settle: Settle = (settled) =>
    settled.due.trigger === 'resend' ? resends.settle(settled) : settleDelivery(settled);
  const loadWebhook = webhookLoader(db);
  const findTarget = createFindTarget({ loadWebhook, settle, nowMs: process.nowMs });
  const deadLetters = openDeadLetters(log);
  const isolation = createIsolation(deps);
  return createAttemptDelivery({
    ...{ ...isolation, topics: TOPICS, deadLetters, settle, findTarget, nowMs: process.nowMs },
    resendOnce: resends.once,
    madeBefore: createMadeBefore({ deliveries, settle }),
    makeAttempt: createMakeAttempt({
      ...{ ...isolation, findTarget, loadWebhook, deadLetters, settle, send },
      loadPayload: createLoadPayload(createMessageStore(db)),
    }),
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

type Isolation = Pick<
  AttemptDeps,
  'putOff' | 'circuit' | 'pace' | 'leases' | 'lanes' | 'spillOver'
>;

/** Every endpoint has room at once; now and then its circuit is open. */
function createIsolation({
  world,
  process,
  log,
}: ServiceDeps): Isolation & { circuit: Parameters<typeof createMakeAttempt>[0]['circuit'] } {
  const { parkedByDelayMs } = TOPICS;
  const { nowMs } = process;
  const putOff = createPutOff({ log, parkedByDelayMs, nowMs });
  return {
    putOff,
    circuit: {
      async isPutOff(record, due) {
        if (!world.random.isHit(world.plan.deferRate)) return false;
        await putOff(record, due, { turnAtMs: nowMs() + DEFER_MS, fit: 'before' });
        return true;
      },
      enter: () => Promise.resolve(() => Promise.resolve()),
    },
    pace: () => Promise.resolve(true),
    lanes: { enter: () => Promise.resolve({ begin: () => undefined, leave: () => undefined }) },
    spillOver: () => Promise.reject(new Error('there is always room')),
    leases: createAttemptLeases({
      // Without Redis everybody is granted everything: the most duplicates there can be.
      running: {
        ...{ announce: () => undefined, withdraw: () => undefined },
        claim: () => Promise.reject(new Error('Redis is away')),
      },
      monotonicMs: world.time.nowMs,
      wait: (ms) => new Promise<void>((resolve) => void world.time.after(ms, resolve)),
    }),
  };
}
