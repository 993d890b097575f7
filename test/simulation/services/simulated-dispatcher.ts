import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import { createDeadLetters } from '@posthorn/platform/records/dead-letters.ts';
import type { ConsumeOptions, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createResendMarks } from '@posthorn/platform/mongo/webhooks/resend-marks.ts';
import { createRecordMemory } from '@posthorn/platform/memory/memory-budgets.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { Registry } from 'prom-client';
import { createAttemptDelivery } from '../../../services/dispatcher/src/attempt/attempt.ts';
import { AttemptLeases } from '../../../services/dispatcher/src/attempt/attempt-leases.ts';
import { createDispatcherMetrics } from '../../../services/dispatcher/src/metrics.ts';
import { createDefer } from '../../../services/dispatcher/src/defer.ts';
import type { Admission, Candidate } from '../../../services/dispatcher/src/isolation/gate.ts';
import {
  createPayloadLoader,
  createPayloadMemory,
  type PayloadMemory,
} from '../../../services/dispatcher/src/payloads.ts';
import { Sequences } from '../../../services/dispatcher/src/order/sequences.ts';
import { openStoredSequences } from '../../../services/dispatcher/src/order/stored-sequences.ts';
import { type LoadWebhook, orderingOf } from '../../../services/dispatcher/src/webhooks.ts';
import {
  createCheckRecorded,
  createDoubleSendGuard,
  type DoubleSendGuard,
} from '../../../services/dispatcher/src/attempt/prevent-double-send.ts';
import {
  createRecordAttempts,
  createSettleDelivery,
  createSettleResend,
} from '../../../services/dispatcher/src/settle.ts';
import { sampleWebhook } from '../../support/samples/sample-webhook.ts';
import type { Send } from './simulated-endpoints.ts';
import type { SimulatedProcess } from '../infrastructure/simulated-process.ts';
import { keepTrying, LOGGER } from '../world/silent-logger.ts';
import { SCHEDULE, TOPICS, type World } from '../world/world.ts';

export interface ServiceDeps {
  world: World;
  process: SimulatedProcess;
  db: Database;
  records: RecordLog;
}

const METRICS = createDispatcherMetrics(new Registry());
const MIB = 1_048_576;
/** By how much an endpoint without a slot defers an attempt. */
const DEFER_MS = 30_000;

/** No simulated app wants its payloads erased. */
const ERASE_NOTHING = (): Promise<void> => Promise.resolve();

/** Returns the steps of the real dispatcher, wired as in start.ts, without Redis and without queues. */
export function createDispatcherSteps(
  deps: ServiceDeps & { send: Send },
): ConsumeOptions['handle'] {
  const { process, db, records, send } = deps;
  const common = {
    metrics: METRICS,
    keepTrying,
    keepTryingWhileDraining: keepTrying,
    logger: LOGGER,
    announce: () => undefined,
    counts: { add: () => undefined, makeRoom: () => Promise.resolve() },
    nowMs: process.nowMs,
  };
  const loadWebhook = webhookLoader(db);
  const { load } = createPayloadLoader(createMessageStore(db), MIB, keepTrying);
  const payloads = createPayloadMemory(load, MIB);
  const enter = createAttemptDelivery({
    messageCreatedTopic: TOPICS.messageCreated,
    slowLaneTopic: TOPICS.slowLane,
    deadLetters: openDeadLetters(records),
    memory: createRecordMemory(64 * MIB),
    doubleSends: openGuard(deps),
    sequences: openSequences(deps),
    loadWebhook,
    isCompanySuspended: () => false,
    disableWebhook: () => Promise.reject(new Error('no simulated endpoint disables its webhook')),
    isCompanyRemoved: () => Promise.resolve(false),
    isErased: () => false,
    cancellations: { reasonFor: () => null },
    queues: { enter: (candidate) => Promise.resolve(admitOrDefer(deps, payloads, candidate)) },
    send,
    tokens: { get: () => Promise.reject(new Error('no webhook has OAuth 2.0')) },
    proxyRetryMs: DEFER_MS,
    // The clocks of the simulation are wrong by themselves; no client gives a time.
    time: { nowMs: process.nowMs, earlierMs: process.nowMs, doubt: () => undefined },
    schedule: SCHEDULE,
    moveToSlowLane: () => Promise.reject(new Error('no simulated endpoint is slow')),
    defer: createDefer({
      records,
      keepTrying,
      deferredByDelayMs: TOPICS.deferredByDelayMs,
      count: () => undefined,
      nowMs: process.nowMs,
    }),
    erasePayloads: ERASE_NOTHING,
    settle: {
      delivery: createSettleDelivery({
        ...common,
        erasePayloads: ERASE_NOTHING,
        records,
        failedTopic: TOPICS.deliveryFailed,
        schedule: SCHEDULE,
        recordAttempts: createRecordAttempts(createDeliveryStore(db)),
      }),
      resend: createSettleResend({
        ...common,
        erasePayloads: ERASE_NOTHING,
        marks: createResendMarks(db),
      }),
    },
    nowMs: process.nowMs,
  });
  return (record, isOurs) => enter(record, isOurs)();
}

/** The memory of the real dispatcher, whose followers leave it by the virtual clock. */
function openSequences({ world, process, db, records }: ServiceDeps): Sequences {
  const { nowMs } = process;
  const { retryDue: retryDueTopic, messageCreated: messageCreatedTopic } = TOPICS;
  const load = webhookLoader(db);
  return new Sequences({
    store: openStoredSequences({ db, records, retryDueTopic, keepTrying, nowMs }),
    messageCreatedTopic,
    orderingOf: async (id) => orderingOf(await load(id)),
    hasMemory: () => true,
    later: (ms, run) => {
      world.time.after(ms, () => {
        if (process.isAlive()) run();
      });
    },
    metrics: METRICS.sequences,
    nowMs,
    monotonicMs: world.time.nowMs,
  });
}

export function openDeadLetters(records: RecordLog): ReturnType<typeof createDeadLetters> {
  const report = (): void => undefined;
  const parts = { records, prefix: '', logger: LOGGER, registry: new Registry(), report };
  return createDeadLetters(TOPICS, parts);
}

/** Loads webhooks without a cache: whether a webhook exists, is enabled and on hold is read for each attempt. */
function webhookLoader(db: Database): LoadWebhook {
  const webhooks = collection(db, 'webhooks');
  return async (id) => {
    const [found] = await keepTrying('look up webhooks', () =>
      webhooks
        .find({ _id: { $in: [id] } })
        .project<Pick<Webhook, 'disabled' | 'held' | 'ordering'>>({
          disabled: 1,
          held: 1,
          ordering: 1,
        })
        .toArray(),
    );
    if (!found) return null;
    const { disabled, held, ordering } = found;
    const webhook = sampleWebhook(0, { disabled, held, ordering, id, rateLimitPerSecond: null });
    return {
      kind: 'opened' as const,
      webhook,
      signer: SIGNER,
      origin: 'https://example.com',
      path: '/hook',
      tls: null,
      appHeld: null,
    };
  };
}

const SIGNER = signerOf(sampleWebhook(0));

/**
 * Gives every attempt a slot and memory for its payload at once, or defers it with the probability of the plan. What
 * waits is no part of the simulation.
 */
function admitOrDefer(
  { world, process }: ServiceDeps,
  payloads: PayloadMemory,
  { companyId, hasPayload }: Candidate,
): Admission {
  if (world.random.bool(world.plan.deferRate)) {
    return { kind: 'defer', because: 'hold', reservedAtMs: process.nowMs() + DEFER_MS };
  }
  const payload = hasPayload() ? null : payloads.reserve(companyId);
  const end = (): Promise<void> => Promise.resolve(payload?.release());
  return { kind: 'slot', slot: { payload, hasWaited: false, begin: () => true, end } };
}

/** Opens the guard without Redis. It then grants every claim, which allows the most duplicates. */
function openGuard({ world, process, db }: ServiceDeps): DoubleSendGuard {
  const { time } = world;
  return createDoubleSendGuard({
    leases: new AttemptLeases({
      running: {
        announce: () => undefined,
        withdraw: () => undefined,
        claim: () => Promise.reject(new Error('Redis cannot be reached')),
      },
      monotonicMs: time.nowMs,
      outageFreeMs: time.nowMs,
      // A crashed process waits for ever.
      wait: (ms, signal) =>
        new Promise<void>((resolve) => {
          const end = (): void => {
            if (process.isAlive()) resolve();
          };
          time.after(ms, end);
          signal?.addEventListener('abort', end);
        }),
      isStopping: () => false,
    }),
    checkRecorded: createCheckRecorded({
      deliveries: createDeliveryStore(db),
      marks: createResendMarks(db),
      keepTrying,
    }),
    slowLaneTopic: TOPICS.slowLane,
    nowMs: process.nowMs,
  });
}
