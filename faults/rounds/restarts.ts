import { CLOSED_CONNECTION, REFUSED_CONNECTION } from '../load/client.ts';
import { type Plan, REFUSED, usualPlan } from '../load/plan.ts';
import type { Round, Scene } from '../round.ts';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { MEMBERS } from '../stack/fleet.ts';
import { halfToOne, oneDead, percentile95, waitsOfOthers } from './endpoints.ts';

const EVERY_MS = 5_000;

async function leaveAndJoin({ fleet, pause, say, seconds }: Scene): Promise<void> {
  const endsAtMs = Date.now() + seconds * 1_000;
  for (let changes = 1; Date.now() < endsAtMs; changes += 2) {
    await fleet.stop('dispatcher-2');
    await pause(EVERY_MS);
    await fleet.start('dispatcher-2');
    say(`${changes + 1} rebalances`);
    await pause(EVERY_MS);
  }
}

const P95_MS = 3_000;

const BESIDE_A_DEAD_ENDPOINT: Round = {
  name: 'F6-dead-endpoint',
  touches: ['dispatcher'],
  summary:
    'a dispatcher leaves and joins every 5 s while an endpoint with half of the traffic is dead',
  promise: `0 lost, 0 duplicates, the p95 of the other endpoints stays below ${P95_MS / 1_000} s`,
  seconds: [30],
  plan: halfToOne,
  recoverWithinMs: null,
  async inject(scene) {
    const { answerBy, book, say } = scene;
    const diedAtMs = Date.now();
    answerBy(oneDead);
    await leaveAndJoin(scene);
    const endedAtMs = Date.now();
    answerBy(halfToOne);
    const p95 = percentile95(waitsOfOthers(book, diedAtMs, endedAtMs - P95_MS));
    say(`p95 of the others: ${p95} ms`);
    const findings = p95 < P95_MS ? [] : [`the p95 of other endpoints was ${p95} ms`];
    return { endedAtMs, findings };
  },
};

/** As many retries are due as messages are sent. */
const allRefusedOnce: Plan = {
  ...usualPlan,
  refusalsOf: () => 1,
  replyTo: (_n, _endpoint, nth) => ({
    kind: 'status',
    status: nth === 1 ? REFUSED : 200,
    afterMs: 0,
  }),
};

const TIMES = 20;

const TOGETHER: Round = {
  name: 'restarts-together',
  touches: ['dispatcher', 'retry'],
  summary: `a dispatcher and a retry service are restarted together ${TIMES} times while every message is retried`,
  promise: '0 lost, 0 duplicates, no retry early, each stop exits 0 within 35 s',
  seconds: [20],
  plan: allRefusedOnce,
  recoverWithinMs: () => 30_000,
  async inject({ fleet, pause, say, seconds }) {
    for (let time = 1; time <= TIMES; time += 1) {
      await Promise.all([fleet.stop('dispatcher-1'), fleet.stop('retry-1')]);
      await Promise.all([fleet.start('dispatcher-1'), fleet.start('retry-1')]);
      say(`restarted ${time} times`);
      await pause((seconds * 1_000) / TIMES);
    }
    return { endedAtMs: Date.now() };
  },
};

export const RESTARTS: readonly Round[] = [
  {
    name: 'F4',
    touches: SERVICES,
    summary: 'SIGTERM to every service in turn, each started again when it has ended',
    promise:
      '0 lost, 0 duplicates, nothing but 202 and connections refused or closed before the request was read, each stop exits 0 within 35 s',
    seconds: [6],
    answers: [REFUSED_CONNECTION, CLOSED_CONNECTION],
    losesNoAnswer: true,
    recoverWithinMs: () => 30_000,
    async inject({ fleet, pause, say, seconds }) {
      for (const member of MEMBERS) {
        say(`${member} is restarted`);
        await fleet.stop(member);
        await fleet.start(member);
        await pause((seconds * 1_000) / MEMBERS.length);
      }
      return { endedAtMs: Date.now() };
    },
  },
  {
    name: 'F6',
    touches: ['dispatcher'],
    summary: 'a dispatcher leaves and joins every 5 s',
    promise: '0 lost, 0 duplicates, no stall',
    seconds: [30],
    recoverWithinMs: () => 30_000,
    async inject(scene) {
      await leaveAndJoin(scene);
      return { endedAtMs: Date.now() };
    },
  },
  BESIDE_A_DEAD_ENDPOINT,
  TOGETHER,
];
