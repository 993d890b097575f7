import { percentilesOf } from '../../bench/measure/figures.ts';
import type { Excuse } from '../audit/evidence.ts';
import type { Book } from '../load/book.ts';
import { type Breakage, ENDPOINTS, type Plan, usualPlan } from '../load/plan.ts';
import type { Round, Scene } from '../round.ts';
import { USUAL_LAYOUT } from '../stack/fleet.ts';

const SECONDS = [20];
const DEAD_STATUS = 500;

/** Half of all messages go to endpoint 0. */
export const halfToOne: Plan = {
  ...usualPlan,
  refusalsOf: () => 0,
  replyTo: () => ({ kind: 'status', status: 200, afterMs: 0 }),
  targetOf: (n) => (n % 2 === 0 ? 0 : 1 + ((n >> 1) % (ENDPOINTS - 1))),
};

export const oneDead: Plan = {
  ...halfToOne,
  replyTo: (_n, endpoint) => ({
    kind: 'status',
    status: endpoint === 0 ? DEAD_STATUS : 200,
    afterMs: 0,
  }),
};

/** From the acceptance to the first request at endpoints other than 0, in milliseconds. */
export function waitsOfOthers({ sent, arrivals }: Book, fromMs: number, toMs: number): number[] {
  const firstAtMs = new Map<string, number>();
  for (const { messageId, atMs } of arrivals)
    if (!firstAtMs.has(messageId)) firstAtMs.set(messageId, atMs);
  return sent.flatMap(({ answer, endpoints, answeredAtMs }) => {
    if (answer.kind !== 'accepted' || endpoints.includes(0)) return [];
    if (answeredAtMs < fromMs || answeredAtMs > toMs) return [];
    return Math.max(0, (firstAtMs.get(answer.messageId) ?? Infinity) - answeredAtMs);
  });
}

/** Below this, a ratio says nothing: other processes share the machine. */
const NOISE_MS = 100;

const DEAD_ENDPOINT: Round = {
  name: 'F10',
  summary: 'an endpoint with half of the traffic is dead, and comes back',
  promise: '0 lost, the p95 of the other endpoints less than doubles (or stays below 100 ms)',
  seconds: SECONDS,
  plan: halfToOne,
  recoverWithinMs: null,
  async inject({ answerBy, book, pause, seconds, say }) {
    const beganAtMs = Date.now();
    await pause(seconds * 500);
    const diedAtMs = Date.now();
    answerBy(oneDead);
    say('endpoint 0 is dead');
    await pause(seconds * 1_000);
    const endedAtMs = Date.now();
    const before = percentile95(waitsOfOthers(book, beganAtMs, diedAtMs));
    const during = percentile95(waitsOfOthers(book, diedAtMs, endedAtMs - 2_000));
    answerBy(halfToOne);
    say(`p95 of the others: ${before} ms before, ${during} ms while endpoint 0 was dead`);
    const isWorse = during > Math.max(2 * before, NOISE_MS);
    return {
      endedAtMs,
      findings: isWorse ? [`p95 of other endpoints rose from ${before} to ${during} ms`] : [],
    };
  },
};

export function percentile95(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? percentilesOf(values).max ?? 0;
}

const CAP = 20;
const SLOW_MS = 50;
const refusing: Plan = {
  ...halfToOne,
  refusalsOf: (_n, endpoint) => (endpoint === 0 ? 1 : 0),
  replyTo: (_n, endpoint, nth) => ({
    kind: 'status',
    status: endpoint === 0 && nth === 1 ? 404 : 200,
    afterMs: endpoint === 0 ? SLOW_MS : 0,
  }),
};

const MANY_DUE: Round = {
  name: 'F11',
  touches: ['retry'],
  summary: 'many parked deliveries of one endpoint are due at once',
  promise: `0 lost, never more than ${CAP} requests at once at the endpoint`,
  seconds: SECONDS,
  layout: {
    ...USUAL_LAYOUT,
    settings: { ...USUAL_LAYOUT.settings, ENDPOINT_CONCURRENCY_MAX: String(CAP) },
  },
  plan: refusing,
  recoverWithinMs: null,
  async inject({ fleet, pause, receiver, say, seconds }) {
    await fleet.stop('retry-1');
    await fleet.stop('retry-2');
    say('nothing is released: retries pile up');
    await pause(seconds * 1_000);
    await fleet.start('retry-1');
    await fleet.start('retry-2');
    const endedAtMs = Date.now();
    await pause(seconds * 1_000);
    const peak = receiver.peakOf(0);
    say(`at most ${peak} requests at once`);
    return {
      endedAtMs,
      findings: peak > CAP ? [`${peak} requests at once instead of ${CAP}`] : [],
    };
  },
};

const BREAKAGES: readonly Breakage[] = ['reset', 'closed', 'no http', 'half a header'];

/** Rare, so that no circuit opens: a circuit counts these failures. */
const BROKEN_EVERY = 12;
const breaking: Plan = {
  ...usualPlan,
  refusalsOf: (n) => (n % BROKEN_EVERY === 0 ? 1 : 0),
  replyTo: (n, _endpoint, nth) => {
    const how = breakageOf(n);
    if (nth === 1 && how) return { kind: 'broken', how };
    return { kind: 'status', status: 200, afterMs: 0 };
  },
};

function breakageOf(n: number): Breakage | undefined {
  return n % BROKEN_EVERY === 0 ? BREAKAGES[(n / BROKEN_EVERY) % BREAKAGES.length] : undefined;
}

/** When a kept connection ends without a byte of an answer, the request is sent once more (docs/contract.md C10.1). */
const SENT_ONCE_MORE: Excuse = {
  reason: 'connection ended without an answer',
  fromMs: -Infinity,
  toMs: Infinity,
  isOf: (n) => ['reset', 'closed'].includes(breakageOf(n) ?? ''),
};

const BROKEN_RESPONSES: Round = {
  name: 'F12',
  summary:
    'endpoints reset or close connections, respond with something other than HTTP, or stop within a header',
  promise:
    '0 lost, each broken request is sent once more (C10.1) or retried as its schedule says, no service ends',
  seconds: SECONDS,
  plan: breaking,
  recoverWithinMs: () => 2_000,
  async inject({ pause, seconds }: Scene) {
    await pause(seconds * 1_000);
    return { endedAtMs: Date.now(), excuses: [SENT_ONCE_MORE] };
  },
};

export const ENDPOINT_FAULTS: readonly Round[] = [DEAD_ENDPOINT, MANY_DUE, BROKEN_RESPONSES];
