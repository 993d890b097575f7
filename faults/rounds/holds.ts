import { Posthorn } from '@posthorn/client';
import type { Excuse } from '../audit/evidence.ts';
import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../load/client.ts';
import type { Round, Scene } from '../round.ts';
import { type Member, USUAL_LAYOUT } from '../stack/fleet.ts';
import { NEXT_CHANGES } from './frozen-changes/freezes.ts';
import { inFlightAt } from './processes.ts';

/** docs/contract.md C24.2, and what the suite may read later. */
const EFFECT_MS = 2_500;

/** The apps of a round, which have all its webhooks. */
interface HeldApps {
  hold: () => Promise<void>;
  resume: () => Promise<void>;
}

/** Those of all companies unless some are given. */
export async function appsOf(
  { companies: all, baseUrls }: Scene,
  companies = all,
): Promise<HeldApps> {
  const opened = companies.map(async ({ apiKey }) => {
    // The suite may freeze what the first gateway needs: the client repeats what got no answer.
    const api = new Posthorn({ baseUrl: baseUrls[0], apiKey });
    const projects = await Array.fromAsync(api.projects.list());
    const projectId = projects.at(-1)?.id ?? '';
    const apps = await Array.fromAsync(api.apps.list({ projectId }));
    return apps.map(({ id }) => ({ api, id }));
  });
  const apps = (await Promise.all(opened)).flat();
  return {
    async hold() {
      await Promise.all(apps.map(({ api, id }) => api.apps.hold(id, { reason: 'a fault' })));
    },
    async resume() {
      await Promise.all(apps.map(({ api, id }) => api.apps.resume(id)));
    },
  };
}

/** Requests that came while everything was on hold. */
function requestsBetween({ book }: Scene, fromMs: number, toMs: number): string[] {
  const found = book.arrivals.filter(({ atMs }) => atMs > fromMs && atMs < toMs);
  return found.length === 0 ? [] : [`${found.length} requests while everything was on hold`];
}

const KILLED_WHILE_HELD: Round = {
  name: 'F17-kill',
  touches: ['dispatcher'],
  summary:
    'everything is on hold, and dispatchers are killed with -9 while deliveries begin to wait',
  promise:
    '0 lost, nothing requested while on hold, duplicates only of what was in flight at the hold',
  seconds: [20],
  recoverWithinMs: null,
  async inject(scene) {
    const { fleet, pause, random, say, seconds } = scene;
    const apps = await appsOf(scene);
    await apps.hold();
    const heldAtMs = Date.now();
    const excuses: Excuse[] = [];
    while (Date.now() - heldAtMs < seconds * 1_000) {
      await pause(1_000 + random() * 3_000);
      const member: Member = random() < 0.5 ? 'dispatcher-1' : 'dispatcher-2';
      const killed = await fleet.kill(member);
      excuses.push(inFlightAt(killed, `the kill of ${member}`));
      await fleet.start(member);
      say(`${excuses.length} kills`);
    }
    const resumedAtMs = Date.now();
    await apps.resume();
    const findings = requestsBetween(scene, heldAtMs + EFFECT_MS, resumedAtMs);
    return { endedAtMs: Date.now(), excuses, findings };
  },
};

const REBALANCE: Round = {
  name: 'F17-rebalance',
  touches: ['dispatcher', 'gateway', 'retry'],
  summary:
    'everything is resumed while a dispatcher leaves and joins, a retry process is killed with -9 and a gateway restarts',
  promise: '0 lost, 0 duplicates, nothing requested while on hold',
  seconds: [20],
  answers: [REFUSED_CONNECTION, CLOSED_CONNECTION, NO_ANSWER, '409'],
  recoverWithinMs: null,
  async inject(scene) {
    const { fleet, pause, say, seconds } = scene;
    const apps = await appsOf(scene);
    await apps.hold();
    const heldAtMs = Date.now();
    await pause(seconds * 500);
    const resumedAtMs = Date.now();
    const findings = requestsBetween(scene, heldAtMs + EFFECT_MS, resumedAtMs);
    await Promise.all([fleet.stop('dispatcher-2'), apps.resume()]);
    await fleet.kill('retry-1');
    await fleet.start('retry-1');
    await fleet.start('dispatcher-2');
    await fleet.stop('gateway-1');
    await fleet.start('gateway-1');
    say('resumed during a rebalance');
    await pause(seconds * 500);
    return { endedAtMs: Date.now(), findings };
  },
};

const MONGODB_FROZEN: Round = {
  name: 'F17-mongodb',
  summary: 'MongoDB is frozen while what waited is released',
  promise: '0 lost, 0 duplicates, nothing requested while on hold',
  seconds: [15],
  answers: [NO_ANSWER, CLOSED_CONNECTION, '503', '409'],
  recoverWithinMs: null,
  async inject(scene) {
    const { pause, say, seconds, stores } = scene;
    const apps = await appsOf(scene);
    await apps.hold();
    const heldAtMs = Date.now();
    await pause(seconds * 1_000);
    const resumedAtMs = Date.now();
    const findings = requestsBetween(scene, heldAtMs + EFFECT_MS, resumedAtMs);
    await apps.resume();
    await pause(300);
    stores.mongodb.freeze();
    try {
      say(`MongoDB is frozen for ${seconds} s`);
      await pause(seconds * 1_000);
    } finally {
      stores.mongodb.thaw();
    }
    return { endedAtMs: Date.now(), findings };
  },
};

/** Caches keep an entry for two seconds then (docs/decisions/0003-caches.md). */
const CHANGES_FROZEN: Round = {
  name: 'F17-changes',
  summary:
    'no service hears of changes any more: everything is put on hold and resumed three times',
  promise: '0 lost, 0 duplicates, nothing requested from 2.5 s after each hold on',
  seconds: [20],
  layout: { ...USUAL_LAYOUT, hasMongodbProxy: true },
  // The end of the fault resets every connection to MongoDB.
  answers: ['503', '409'],
  recoverWithinMs: null,
  async inject(scene) {
    const { pause, proxies, say, seconds } = scene;
    const apps = await appsOf(scene);
    proxies.mongodb?.cutAt(NEXT_CHANGES);
    const findings: string[] = [];
    for (const time of [1, 2, 3]) {
      await pause((seconds * 1_000) / 6);
      await apps.hold();
      const heldAtMs = Date.now();
      await pause(EFFECT_MS + (seconds * 1_000) / 6);
      findings.push(...requestsBetween(scene, heldAtMs + EFFECT_MS, Date.now()));
      await apps.resume();
      say(`${time} times`);
    }
    proxies.mongodb?.mend();
    return { endedAtMs: Date.now(), findings };
  },
};

const TIMES = 100;

const FLAPPING: Round = {
  name: 'F17-flapping',
  summary: `everything is put on hold and resumed ${TIMES} times in a minute`,
  promise: '0 lost, 0 duplicates',
  seconds: [60],
  recoverWithinMs: null,
  async inject(scene) {
    const { pause, random, say, seconds } = scene;
    const apps = await appsOf(scene);
    for (let time = 1; time <= TIMES; time += 1) {
      await apps.hold();
      await pause((random() * seconds * 1_000) / TIMES);
      await apps.resume();
      await pause((random() * seconds * 1_000) / TIMES);
      if (time % 10 === 0) say(`${time} times`);
    }
    return { endedAtMs: Date.now() };
  },
};

export const HOLDS: readonly Round[] = [
  KILLED_WHILE_HELD,
  REBALANCE,
  MONGODB_FROZEN,
  FLAPPING,
  CHANGES_FROZEN,
];
