import { signerOf } from '@posthorn/domain/request/delivery-headers.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createRecordMemory } from '@posthorn/platform/memory/record-memory.ts';
import { createAttemptDelivery } from '../../../services/dispatcher/src/attempt-delivery.ts';
import { createAttemptLeases } from '../../../services/dispatcher/src/once/attempt-leases.ts';
import { createDefer } from '../../../services/dispatcher/src/isolation/defer-attempt.ts';
import type { Reason } from '../../../services/dispatcher/src/isolation/gate/gate.ts';
import type { CircuitView } from '../../../services/dispatcher/src/isolation/gate/views.ts';
import { createMoveToSlowLane } from '../../../services/dispatcher/src/isolation/move-to-slow-lane.ts';
import { createQueues } from '../../../services/dispatcher/src/isolation/queues/queues.ts';
import type { LoadWebhook } from '../../../services/dispatcher/src/load/load-webhook.ts';
import { createMakeAttempt } from '../../../services/dispatcher/src/make-attempt.ts';
import type { MadeBefore } from '../../../services/dispatcher/src/settle/settle-if-recorded.ts';
import { createPayloadMemory } from '../../../services/dispatcher/src/load/payload-memory.ts';
import type { SendWebhook } from '../../../services/dispatcher/src/sending/send-webhook.ts';
import type { Settled } from '../../../services/dispatcher/src/settle/settle-delivery.ts';
import { sampleWebhook } from '../samples/sample-webhook.ts';

export const NOW_MS = 1_700_000_000_000;
const webhook = sampleWebhook(1, { rateLimitPerSecond: null });
export const FOUND = {
  webhook,
  signer: signerOf(webhook),
  origin: 'https://example.com',
  path: '/',
};

/** Around the real steps of an attempt: what they find, and what they leave behind. */
export interface AttemptSteps {
  attempt: ReturnType<typeof createAttemptDelivery>;
  settled: Settled[];
  /** Numbers of the attempts sent. */
  sent: number[];
  published: OutgoingRecord[];
  /** Why attempts were deferred. */
  deferred: Reason[];
  /** Bytes that records under work take. */
  heldBytes: () => number;
  /** Lets this much time pass, and the queues look at it. */
  pass: (ms: number) => void;
  asked: { madeBefore: number; webhook: number; resend: number };
}

export interface Around {
  loadWebhook?: LoadWebhook;
  payload?: Buffer | null;
  /** Answers 200 at once unless told. */
  send?: SendWebhook;
  circuit?: () => CircuitView;
  madeBefore?: MadeBefore;
  isResendWanted?: () => boolean;
  /** Attempts that the endpoint may have at once; 16 unless told. */
  perEndpoint?: number;
  maxWaitMs?: number;
}

export function createAttemptSteps(around: Around = {}): AttemptSteps {
  const steps: Pick<AttemptSteps, 'settled' | 'sent' | 'published' | 'deferred'> = {
    settled: [],
    sent: [],
    published: [],
    deferred: [],
  };
  const asked = { madeBefore: 0, webhook: 0, resend: 0 };
  const records = {
    publish(records: readonly OutgoingRecord[]) {
      steps.published.push(...records);
      return Promise.resolve();
    },
  };
  const settle = (each: Settled): Promise<void> => {
    steps.settled.push(each);
    return Promise.resolve();
  };
  const nowMs = (): number => NOW_MS;
  const loadWebhook: LoadWebhook = (id) => {
    asked.webhook += 1;
    return around.loadWebhook ? around.loadWebhook(id) : Promise.resolve(FOUND);
  };
  const send: SendWebhook = (due, ...rest) => {
    steps.sent.push(due.attemptNumber);
    return (around.send ?? sendWell)(due, ...rest);
  };
  let passedMs = 0;
  const monotonicMs = (): number => passedMs;
  const places = around.perEndpoint ?? 16;
  const queues = createQueues({
    limits: {
      perEndpoint: { floor: places, start: places, ceiling: places },
      fast: 1_000,
      slow: 10,
      beginsATurn: { fast: 16, slow: 4 },
    },
    maxWaitMs: () => around.maxWaitMs ?? 30_000,
    isOverloaded: () => false,
    circuitOf: around.circuit ?? (() => ({ kind: 'closed' })),
    permit: () => () => Promise.resolve(),
    onHold: () => undefined,
    nowMs,
    monotonicMs,
    busyMs: monotonicMs,
    inNextTurn: (act) => void setImmediate(act),
    wakeAfter: () => () => undefined,
  });
  const memory = createRecordMemory(1_000_000);
  const payload = around.payload === undefined ? Buffer.from('{}') : around.payload;
  const attempt = createAttemptDelivery({
    topics: { messageCreated: 'created', slowLane: 'slow' },
    deadLetters: { put: () => Promise.resolve() },
    memory,
    leases: createAttemptLeases({
      running: {
        announce: () => undefined,
        withdraw: () => undefined,
        claim: (ids) => Promise.resolve(new Set(ids)),
      },
      monotonicMs: () => 0,
      wait: () => new Promise(() => undefined),
    }),
    madeBefore: (...given) => {
      asked.madeBefore += 1;
      return around.madeBefore?.(...given) ?? Promise.resolve(false);
    },
    resendOnce: (_due, work) => {
      asked.resend += 1;
      return (around.isResendWanted?.() ?? true) ? work() : Promise.resolve();
    },
    loadWebhook,
    queues,
    makeAttempt: createMakeAttempt({
      payloads: createPayloadMemory(() => Promise.resolve(payload), 1_000_000),
      loadWebhook,
      send,
      nowMs,
    }),
    moveToSlowLane: createMoveToSlowLane({
      records,
      slowLaneTopic: 'slow',
      count: () => undefined,
    }),
    defer: createDefer({
      records,
      deferredByDelayMs: new Map([[5_000, 'deferred']]),
      count: (because) => steps.deferred.push(because),
      nowMs,
    }),
    settle,
    nowMs,
  });
  const pass = (ms: number): void => {
    passedMs += ms;
    queues.tick();
  };
  return { ...steps, attempt, asked, heldBytes: memory.usedBytes, pass };
}

export const sendWell: SendWebhook = ({ attemptNumber: number, trigger }) =>
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
