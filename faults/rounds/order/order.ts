import { PosthornError } from '@posthorn/client';
import type { Excuse, Finding } from '../../audit/evidence.ts';
import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../../load/client.ts';
import type { Round, Scene } from '../../round.ts';
import { type Member, serviceOf, USUAL_LAYOUT } from '../../stack/fleet.ts';
import { createFreezes, disturbProcesses, type Freeze, type Freezes } from '../disturb.ts';
import { inFlightAt } from '../processes.ts';
import { ENDPOINTS, orderingOf } from './order-plan.ts';
import { auditRecorded, cancelOne, freeBlocked, untilDrained } from './order-record.ts';
import { type OrderedLoad, openOrderedLoad, sendInOrder } from './ordered-load.ts';

const LEAST_FROZEN_MS = 30_000;
const MOST_FROZEN_MS = 90_000;
/** Of the time of the round, when that is short. */
const MOST_FROZEN_SHARE = 0.1;
/** A long round freezes each store again after this time. */
const CYCLE_S = 600;
/** Half as long as the attempts of a schedule take: what fails meanwhile is not exhausted, as it would be from then on. */
const BLOCK_DOWN_MS = 5_000;
const SKIP_DOWN_MS = 60_000;
const DOWN_TIMES_PER_CYCLE = 8;
const CANCEL_EVERY_MS = 2_000;

export const ORDER_LAYOUT = {
  ...USUAL_LAYOUT,
  settings: {
    ...USUAL_LAYOUT.settings,
    RATE_LIMIT_COMPANY_PER_MINUTE: '0',
    // An endpoint that is back gets its keys soon: half a minute would be most of a short round.
    CIRCUIT_RESET_MS: '3000',
  },
};

export const ORDER: Round = {
  name: 'order',
  touches: ['gateway', 'dispatcher', 'retry'],
  summary:
    'messages of 200 ordering keys to failing webhooks with block and skip; kill -9 of a process of each service every 20 s, a rebalance every 30 s, each store frozen (--records)',
  promise:
    '0 first successes out of order, 0 attempts before their turn, 0 lost; the blocked keys are listed and no others, and go on when they are skipped or sent again; 0 lost of what is sent besides',
  seconds: [150],
  layout: ORDER_LAYOUT,
  answers: ['503', '409', REFUSED_CONNECTION, CLOSED_CONNECTION, NO_ANSWER],
  recoverWithinMs: null,
  async inject(scene) {
    const load = await openOrderedLoad(scene);
    const freezes = createFreezes(scene, freezesOf(scene));
    const excuses: Excuse[] = [];
    const stopped = new AbortController();
    const disturbances = Promise.all([
      disturb(scene, freezes, excuses),
      freezes.run(),
      takeEndpointsDown(scene, load),
    ]);
    const cancelling = cancelHeads(scene, load, stopped.signal);
    await Promise.all([sendInOrder(load, scene), disturbances]);
    stopped.abort();
    await cancelling;
    const endedAtMs = Date.now();
    return { endedAtMs, excuses, findings: await auditAll(scene, load) };
  },
};

/** Audits what has come, then frees the blocked keys and audits what came behind them. */
async function auditAll(scene: Scene, load: OrderedLoad): Promise<Finding[]> {
  const { say } = scene;
  say(`${load.book.accepted} messages in order accepted`);
  await untilDrained(load, scene);
  const blocked = await auditRecorded(load, scene);
  if (blocked.length > 0) return blocked;
  say(`${await freeBlocked(load, scene)} blocked keys freed`);
  return auditRecorded(load, scene);
}

/** Each store once in a cycle. */
function freezesOf({ seconds, random }: Scene): Freeze[] {
  const cycles = Math.max(1, Math.floor(seconds / CYCLE_S));
  const longestMs = (seconds / cycles) * 1_000 * MOST_FROZEN_SHARE;
  return Array.from({ length: cycles }, () =>
    (['kafka', 'mongodb', 'redis'] as const).map((store) => {
      const wantedMs = LEAST_FROZEN_MS + random() * (MOST_FROZEN_MS - LEAST_FROZEN_MS);
      return { store, afterShare: 0.2 / cycles, frozenMs: Math.min(longestMs, wantedMs) };
    }),
  ).flat();
}

/** One process of each service is killed at a time; the other one runs on. */
function disturb(scene: Scene, freezes: Freezes, excuses: Excuse[]): Promise<void> {
  return disturbProcesses(scene, freezes, {
    killed: (turn): Member[] => {
      const number = 1 + (turn % 2);
      return [`gateway-${number}`, `dispatcher-${number}`, `retry-${number}`];
    },
    restarted: (turn) => `dispatcher-${1 + (turn % 2)}`,
    onKilled: (member, killed) => {
      if (serviceOf(member) !== 'dispatcher') return;
      const sinceMs = freezes.frozenSinceMs() ?? killed.sinceMs;
      excuses.push(inFlightAt({ ...killed, sinceMs }, `the kill of ${member}`));
    },
  });
}

/** One endpoint after the other resets its connections for a while. */
async function takeEndpointsDown({ pause, seconds, say }: Scene, load: OrderedLoad): Promise<void> {
  const cycles = Math.max(1, Math.floor(seconds / CYCLE_S));
  const stepMs = (seconds * 1_000) / (DOWN_TIMES_PER_CYCLE * cycles);
  for (let turn = 0; turn < DOWN_TIMES_PER_CYCLE * cycles; turn += 1) {
    const endpoint = turn % ENDPOINTS;
    const longestMs = orderingOf(endpoint) === 'block' ? BLOCK_DOWN_MS : SKIP_DOWN_MS;
    const downMs = Math.min(longestMs, stepMs * 0.75);
    await pause(stepMs - downMs);
    load.down.add(endpoint);
    say(`endpoint ${endpoint} is down for ${Math.round(downMs / 1_000)} s`);
    await pause(downMs).finally(() => load.down.delete(endpoint));
  }
}

/** A client cancels the head of a waiting key again and again. While a store is away it gets no answer. */
async function cancelHeads(scene: Scene, load: OrderedLoad, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    await scene.pause(CANCEL_EVERY_MS);
    await cancelOne(load, scene.random).catch((error: unknown) => {
      if (!(error instanceof PosthornError)) throw error;
    });
  }
}
