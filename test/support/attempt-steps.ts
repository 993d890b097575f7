import { signerOf } from '@posthorn/domain/delivery-headers.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import { createAttemptDelivery } from '../../services/dispatcher/src/attempt-delivery.ts';
import { createAttemptLeases } from '../../services/dispatcher/src/attempt-leases.ts';
import { createEndpointLanes } from '../../services/dispatcher/src/endpoint-lanes.ts';
import { createFindTarget } from '../../services/dispatcher/src/find-target.ts';
import type { LoadWebhook } from '../../services/dispatcher/src/load-webhook.ts';
import { createMakeAttempt } from '../../services/dispatcher/src/make-attempt.ts';
import type { MadeBefore } from '../../services/dispatcher/src/made-before.ts';
import type { PassCircuit } from '../../services/dispatcher/src/pass-circuit.ts';
import { createPutOff } from '../../services/dispatcher/src/put-off.ts';
import type { SendWebhook } from '../../services/dispatcher/src/send-webhook.ts';
import type { Settled } from '../../services/dispatcher/src/settle-delivery.ts';
import { createSpillOver } from '../../services/dispatcher/src/spill-over.ts';
import { Counter, Registry } from 'prom-client';
import { sampleWebhook } from './sample-webhook.ts';

export const NOW_MS = 1_700_000_000_000;
const webhook = sampleWebhook(1, { rateLimitPerSecond: null });
export const FOUND = {
  ...{ webhook, signer: signerOf(webhook) },
  ...{ origin: 'https://example.com', path: '/' },
};

/** Around the real steps of an attempt: what they find, and what they leave behind. */
export interface AttemptSteps {
  attempt: ReturnType<typeof createAttemptDelivery>;
  settled: Settled[];
  /** Numbers of the attempts sent. */
  sent: number[];
  published: OutgoingRecord[];
  asked: { madeBefore: number; webhook: number; resend: number };
}

export interface Around {
  loadWebhook?: LoadWebhook;
  payload?: Buffer | null;
  /** Answers 200 at once unless told. */
  send?: SendWebhook;
  circuit?: PassCircuit;
  madeBefore?: MadeBefore;
  isResendWanted?: () => boolean;
  perEndpoint?: number;
}

export function createAttemptSteps(around: Around = {}): AttemptSteps {
  const steps = { settled: [], sent: [], published: [] } as Omit<AttemptSteps, 'attempt' | 'asked'>;
  const asked = { madeBefore: 0, webhook: 0, resend: 0 };
  const counter = new Counter({ name: 'counter', help: 'x', registers: [new Registry()] });
  const log = {
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
  const lanes = createEndpointLanes({
    perEndpoint: around.perEndpoint ?? 16,
    fast: 1_000,
    slow: 10,
  });
  const putOff = createPutOff({ log, nowMs, parkedByDelayMs: new Map([[5_000, 'parked']]) });
  const findTarget = createFindTarget({ loadWebhook, settle, nowMs });
  const deadLetters = { put: () => Promise.resolve() };
  const circuit = around.circuit ?? CLOSED;
  const payload = around.payload === undefined ? Buffer.from('{}') : around.payload;
  const attempt = createAttemptDelivery({
    ...{ settle, findTarget, putOff, circuit, deadLetters, lanes, nowMs },
    topics: { messageCreated: 'created', slowLane: 'slow' },
    madeBefore: (...given) => {
      asked.madeBefore += 1;
      return around.madeBefore?.(...given) ?? Promise.resolve(false);
    },
    resendOnce: (_due, work) => {
      asked.resend += 1;
      return (around.isResendWanted?.() ?? true) ? work() : Promise.resolve();
    },
    pace: () => Promise.resolve(true),
    leases: createAttemptLeases({
      running: {
        announce: () => undefined,
        withdraw: () => undefined,
        claim: (ids) => Promise.resolve(new Set(ids)),
      },
      ...{ monotonicMs: () => 0, wait: () => new Promise(() => undefined) },
    }),
    spillOver: createSpillOver({
      ...{ log, lanes, putOff, nowMs, slowLaneTopic: 'slow', spills: counter, deferrals: counter },
    }),
    makeAttempt: createMakeAttempt({
      ...{ findTarget, circuit, loadWebhook, deadLetters, settle, send },
      loadPayload: () => Promise.resolve(payload),
    }),
  });
  return { ...steps, attempt, asked };
}

const CLOSED: PassCircuit = {
  isPutOff: () => Promise.resolve(false),
  enter: () => Promise.resolve(() => Promise.resolve()),
};

export const sendWell: SendWebhook = ({ attemptNumber: number, trigger }) =>
  Promise.resolve({
    ...{ id: `att_${number}`, number, trigger, outcome: 'success', statusCode: 200 },
    ...{ response: null, responseHeaders: [], startedAtMs: NOW_MS, durationMs: 1 },
  });
