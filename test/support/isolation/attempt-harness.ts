import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import type { DatabaseTime } from '@posthorn/platform/mongo/database-time.ts';
import type { IsOurs, LogRecord, OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { SealedValueError } from '@posthorn/platform/security/vault.ts';
import { createRecordMemory } from '@posthorn/platform/memory/memory-budgets.ts';
import { createAttemptDelivery } from '../../../services/dispatcher/src/attempt/attempt.ts';
import { AttemptLeases } from '../../../services/dispatcher/src/attempt/attempt-leases.ts';
import type { Cancellations } from '../../../services/dispatcher/src/cancellations.ts';
import type { CircuitReport } from '../../../services/dispatcher/src/isolation/circuit.ts';
import { createDefer, createMoveToSlowLane } from '../../../services/dispatcher/src/defer.ts';
import type {
  CircuitView,
  DeferralReason,
} from '../../../services/dispatcher/src/isolation/gate.ts';
import { Queues } from '../../../services/dispatcher/src/isolation/queues.ts';
import type { Place } from '../../../services/dispatcher/src/order/sequence-in-memory.ts';
import type { LoadWebhook } from '../../../services/dispatcher/src/webhooks.ts';
import {
  createDoubleSendGuard,
  type DoubleSendGuard,
  type Remaining,
} from '../../../services/dispatcher/src/attempt/prevent-double-send.ts';
import { createPayloadMemory } from '../../../services/dispatcher/src/payloads.ts';
import type { SendWebhook } from '../../../services/dispatcher/src/sending/send-webhook.ts';
import type { AccessTokens } from '../../../services/dispatcher/src/sending/access-tokens.ts';
import type { Settled } from '../../../services/dispatcher/src/settle.ts';
import { sampleWebhook } from '../samples/sample-webhook.ts';
import { keepTrying } from '../time/keep-trying.ts';

export const NOW_MS = 1_700_000_000_000;
const webhook = sampleWebhook(1, { rateLimitPerSecond: null });
export const FOUND = {
  webhook,
  kind: 'opened' as const,
  signer: signerOf(webhook),
  origin: 'https://example.com',
  path: '/',
  tls: null,
  appHeld: null,
};

/** A webhook whose secrets cannot be opened. */
export const SEALED = {
  kind: 'unopened' as const,
  id: 'wh_1',
  companyId: webhook.companyId,
  projectId: webhook.projectId,
  appId: 'app_1',
  disabled: false,
  cancelBeforeMs: null,
  eventTypes: [],
  filter: null,
  held: null,
  appHeld: null,
  maxAttempts: null,
  ordering: 'none' as const,
  problem: new SealedValueError('secret of wh_1 is not a sealed value', null),
};

/** The dispatcher finds this webhook. */
export const finding = (found: Awaited<ReturnType<LoadWebhook>>): AttemptHarnessOptions => ({
  loadWebhook: () => Promise.resolve(found),
});

/** The real steps of an attempt between fakes, with what they have done. */
export interface AttemptHarness {
  /** Attempts a record of a partition that is read here, unless `isOurs` says otherwise. */
  attempt: (record: LogRecord, isOurs?: IsOurs) => Promise<void>;
  /** The settled first attempts, retries and tests. */
  settled: Settled[];
  settledResends: Settled[];
  /** The numbers of the attempts that were sent. */
  sent: number[];
  published: OutgoingRecord[];
  /** The reasons of the dead letters. */
  deadLetters: string[];
  /** The reasons of the deferred attempts. */
  deferred: DeferralReason[];
  /** The reasons for which endpoints disabled the webhook. */
  disabledFor: string[];
  /** The messages of dropped attempts, whose payloads may have to be erased. */
  erased: string[];
  /** Returns the bytes of the records in progress. */
  heldBytes: () => number;
  /** Advances the clock and ticks the queues. */
  pass: (ms: number) => void;
  /** How many times a webhook, a company, or what is recorded of an attempt was loaded, and how many attempts were claimed. */
  loads: { recorded: number; webhook: number; company: number; claimed: number };
}

export interface AttemptHarnessOptions {
  loadWebhook?: LoadWebhook;
  payload?: Buffer | 'erased' | null;
  /** By default, succeeds at once with 200. */
  send?: SendWebhook;
  tokens?: Pick<AccessTokens, 'get'>;
  circuit?: () => CircuitView;
  /** What the circuit is told of each attempt. */
  onReport?: (report: CircuitReport | null) => void;
  /** Whether the company is suspended; it is not by default. */
  isCompanySuspended?: () => boolean;
  /** Whether the company is removed; false by default. */
  isCompanyRemoved?: boolean;
  /** Whether a client has erased the payload of the message; false by default. */
  isErased?: () => boolean;
  /** Whether a client has cancelled the delivery by a filter; by default it has not. */
  cancelledReason?: Cancellations['reasonFor'];
  /** What remains to be done according to the stores. By default, the attempt is sent. */
  remaining?: Remaining;
  /** Attempts that the endpoint may have at once; 16 by default. */
  perEndpoint?: number;
  maxWaitMs?: number;
  /** The time of the database; that of the process, NOW_MS, by default. */
  time?: DatabaseTime;
  /** How long the stores have answered, in milliseconds; 0 by default. */
  outageFreeMs?: () => number;
  /** The clock of the leases, which do not tick, in milliseconds; 0 by default. */
  leaseClockMs?: () => number;
  /** Resolves when an outcome is recorded; at once by default. */
  settling?: () => Promise<void>;
  /** Called when records are published. */
  onPublish?: () => void;
  /** The place behind earlier deliveries with its ordering key; none by default. */
  place?: Place;
}

export function createAttemptHarness(options: AttemptHarnessOptions = {}): AttemptHarness {
  const harness: Omit<AttemptHarness, 'attempt' | 'heldBytes' | 'pass' | 'loads'> = {
    settled: [],
    settledResends: [],
    sent: [],
    published: [],
    deadLetters: [],
    deferred: [],
    disabledFor: [],
    erased: [],
  };
  const loads = { recorded: 0, webhook: 0, company: 0, claimed: 0 };
  const records = {
    publish(records: readonly OutgoingRecord[]) {
      options.onPublish?.();
      harness.published.push(...records);
      return Promise.resolve();
    },
  };
  const settleInto =
    (list: Settled[]) =>
    (settled: Settled): Promise<void> => {
      list.push(settled);
      return options.settling?.() ?? Promise.resolve();
    };
  const nowMs = (): number => NOW_MS;
  const loadWebhook: LoadWebhook = (id) => {
    loads.webhook += 1;
    return options.loadWebhook ? options.loadWebhook(id) : Promise.resolve(FOUND);
  };
  const send: SendWebhook = (due, ...rest) => {
    harness.sent.push(due.attemptNumber);
    return (options.send ?? sendSuccessfully)(due, ...rest);
  };
  let passedMs = 0;
  const monotonicMs = (): number => passedMs;
  const slots = options.perEndpoint ?? 16;
  const payload = options.payload === undefined ? Buffer.from('{}') : options.payload;
  const queues = new Queues({
    payloads: createPayloadMemory(() => Promise.resolve(loadedOf(payload)), 1_000_000),
    limits: {
      perEndpoint: { floor: slots, start: slots, ceiling: slots },
      perHostPerSecond: 0,
      fast: 1_000,
      slow: 10,
      startsPerLoop: { fast: 16, slow: 4 },
    },
    maxWaitMs: () => options.maxWaitMs ?? 30_000,
    isOverloaded: () => false,
    onArrival: () => undefined,
    circuitOf: options.circuit ?? (() => ({ kind: 'closed' })),
    beginAttempt: () => (report) => Promise.resolve(options.onReport?.(report)),
    handover: { pausedUntilMs: () => 0, learned: () => null, reportPause: () => undefined },
    nowMs,
    monotonicMs,
    stallFreeMs: monotonicMs,
    inNextLoop: (act) => void setImmediate(act),
    wakeAfter: () => () => undefined,
  });
  const memory = createRecordMemory(1_000_000);
  const attemptDelivery = createAttemptDelivery({
    messageCreatedTopic: 'created',
    slowLaneTopic: 'slow',
    deadLetters: {
      put: (_record, reason) => Promise.resolve(void harness.deadLetters.push(reason)),
    },
    memory,
    doubleSends: createGuard(loads, options),
    sequences: { enter: () => options.place ?? null, wake: () => Promise.resolve() },
    loadWebhook,
    isCompanySuspended: options.isCompanySuspended ?? (() => false),
    disableWebhook: ({ reason }) => Promise.resolve(void harness.disabledFor.push(reason)),
    isCompanyRemoved() {
      loads.company += 1;
      return Promise.resolve(options.isCompanyRemoved ?? false);
    },
    isErased: options.isErased ?? (() => false),
    cancellations: { reasonFor: options.cancelledReason ?? (() => null) },
    queues,
    send,
    tokens: options.tokens ?? { get: () => Promise.reject(new Error('no token is needed')) },
    proxyRetryMs: 30_000,
    time: options.time ?? { nowMs, earlierMs: nowMs, doubt: () => undefined },
    schedule: [5_000],
    moveToSlowLane: createMoveToSlowLane({
      records,
      slowLaneTopic: 'slow',
      keepTrying,
      count: () => undefined,
    }),
    defer: createDefer({
      records,
      keepTrying,
      deferredByDelayMs: new Map([[5_000, 'deferred']]),
      count: (because) => harness.deferred.push(because),
      nowMs,
    }),
    erasePayloads: (dues) => {
      harness.erased.push(...dues.map(({ messageId }) => messageId));
      return Promise.resolve();
    },
    settle: { delivery: settleInto(harness.settled), resend: settleInto(harness.settledResends) },
    nowMs,
  });
  const attempt: AttemptHarness['attempt'] = (record, isOurs = () => true) =>
    attemptDelivery(record, isOurs)();
  const pass = (ms: number): void => {
    passedMs += ms;
    queues.tick();
  };
  return { ...harness, attempt, loads, heldBytes: memory.usedBytes, pass };
}

function createGuard(
  loads: AttemptHarness['loads'],
  options: AttemptHarnessOptions,
): DoubleSendGuard {
  const { outageFreeMs = () => 0, leaseClockMs = () => 0 } = options;
  return createDoubleSendGuard({
    leases: new AttemptLeases({
      running: {
        announce: () => undefined,
        withdraw: () => undefined,
        claim: (ids) => {
          loads.claimed += ids.length;
          return Promise.resolve(new Set(ids));
        },
      },
      monotonicMs: leaseClockMs,
      outageFreeMs,
      wait: (_ms, signal) =>
        new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true })),
      isStopping: () => false,
    }),
    checkRecorded: () => {
      loads.recorded += 1;
      return Promise.resolve(options.remaining ?? { kind: 'send' });
    },
    slowLaneTopic: 'slow',
    nowMs: () => NOW_MS,
  });
}

export const sendSuccessfully = (
  ...[{ attemptNumber: number, trigger }]: Parameters<SendWebhook>
): Promise<Attempt> =>
  Promise.resolve({
    id: `att_${number}`,
    number,
    trigger,
    outcome: 'success',
    statusCode: 200,
    response: null,
    responseHeaders: [],
    startedAtMs: NOW_MS,
    durationMs: 1,
  });

/** Headers of the records of the message whose payload is loaded. */
export const MESSAGE_HEADERS = {
  requestId: 'req_message',
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  'event-type': 'order.paid',
};

const loadedOf = (payload: Buffer | 'erased' | null) =>
  Buffer.isBuffer(payload) ? { bytes: payload, headers: MESSAGE_HEADERS } : payload;
