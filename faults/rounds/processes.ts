import { type Round, type Scene, ANSWER_WITHIN_MS } from '../round.ts';
import { type Killed, type Member, serviceOf, USUAL_LAYOUT } from '../stack/fleet.ts';
import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../load/client.ts';
import type { Excuse } from '../audit/evidence.ts';

const SECONDS = 10;
/** The partitions of a dead process move within 15 s (ARCHITECTURE.md, When something fails); then they are read. */
const recoverWithinMs = (): number => 30_000;
const CONFLICT = '409';

/** Kills one of two at a random moment and starts it again at once, as Kubernetes does. */
async function killOneOf(
  scene: Scene,
  members: readonly Member[],
): Promise<{ member: Member; killed: Killed }> {
  const { fleet, random, seconds, pause, say } = scene;
  const member = members[Math.floor(random() * members.length)] ?? 'gateway-1';
  await pause(random() * seconds * 1_000);
  const killed = await fleet.kill(member);
  say(`${member} was killed`);
  await fleet.start(member);
  return { member, killed };
}

export const KILLS: readonly Round[] = [
  {
    name: 'F1',
    touches: ['gateway'],
    summary: 'kill -9 of a gateway at a random moment',
    promise:
      '0 lost, no duplicate, lag below 2 s within 30 s; requests to the dead gateway get no response',
    seconds: [SECONDS],
    answers: [REFUSED_CONNECTION, CLOSED_CONNECTION, NO_ANSWER, CONFLICT],
    recoverWithinMs,
    async inject(scene) {
      await killOneOf(scene, ['gateway-1', 'gateway-2']);
      return { endedAtMs: Date.now() };
    },
  },
  {
    name: 'F2',
    touches: ['dispatcher'],
    summary: 'kill -9 of a dispatcher at a random moment',
    promise: '0 lost, duplicates only of what was in flight at the kill, lag below 2 s within 30 s',
    seconds: [SECONDS],
    recoverWithinMs,
    async inject(scene) {
      const { member, killed } = await killOneOf(scene, ['dispatcher-1', 'dispatcher-2']);
      return { endedAtMs: Date.now(), excuses: [inFlightAt(killed, `the kill of ${member}`)] };
    },
  },
  {
    name: 'F3',
    touches: ['retry'],
    summary: 'kill -9 of a retry service at a random moment',
    promise: '0 lost, no retry early, no duplicate',
    seconds: [SECONDS],
    recoverWithinMs,
    async inject(scene) {
      await killOneOf(scene, ['retry-1', 'retry-2']);
      return { endedAtMs: Date.now() };
    },
  },
];

/** How long Kafka answers nothing before the gateways are killed: what they accept meanwhile is only in MongoDB. */
const UNPUBLISHED_MS = 3_000;

export const UNPUBLISHED: Round = {
  name: 'F1-unpublished',
  touches: ['gateway'],
  summary: 'kill -9 of both gateways while Kafka answers nothing',
  promise: '0 lost: the sweep publishes what they have accepted; 0 duplicates',
  seconds: [SECONDS],
  answers: [REFUSED_CONNECTION, CLOSED_CONNECTION, NO_ANSWER, CONFLICT],
  recoverWithinMs,
  async inject({ fleet, stores, random, seconds, pause, say }) {
    await pause(random() * seconds * 1_000);
    stores.kafka.freeze();
    try {
      await pause(UNPUBLISHED_MS);
      await Promise.all([fleet.kill('gateway-1'), fleet.kill('gateway-2')]);
      say('both gateways were killed');
    } finally {
      stores.kafka.thaw();
    }
    await Promise.all([fleet.start('gateway-1'), fleet.start('gateway-2')]);
    return { endedAtMs: Date.now() };
  },
};

export const CALM: Round = {
  name: 'F0',
  summary: 'no fault',
  promise: '0 lost, no duplicate, no retry early, nothing but 202',
  seconds: [SECONDS],
  recoverWithinMs: () => 2_000,
  async inject({ pause, seconds }) {
    await pause(seconds * 1_000);
    return { endedAtMs: Date.now() };
  },
};

const WATCHDOG_MS = 150_000;

function freezing(member: Member, answers: readonly string[]): Round {
  return {
    // A suspended gateway responds to the requests it has when it is resumed.
    answerWithinMs: (seconds) => seconds * 1_000 + ANSWER_WITHIN_MS,
    name: `F7-${member}`,
    touches: [serviceOf(member)],
    summary: `${member} is suspended with SIGSTOP, and resumed later`,
    promise:
      '0 lost, duplicates only of what was in flight when it was suspended, recovery within 150 s',
    seconds: [45],
    answers,
    recoverWithinMs: () => WATCHDOG_MS,
    async inject({ fleet, pause, say, seconds }) {
      fleet.freeze(member);
      const atMs = Date.now();
      say(`${member} is suspended for ${seconds} s`);
      try {
        await pause(seconds * 1_000);
      } finally {
        fleet.thaw(member);
      }
      say(`${member} is resumed`);
      return {
        endedAtMs: Date.now(),
        excuses: [inFlightAt({ sinceMs: atMs, untilMs: atMs }, `the stop of ${member}`)],
      };
    },
  };
}

export const FROZEN_SERVICES: readonly Round[] = [
  freezing('gateway-1', [CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION, '409', '503']),
  freezing('dispatcher-1', []),
  freezing('retry-1', []),
  {
    name: 'cut-dispatcher',
    summary: 'the network between one dispatcher and Kafka is cut; everything else works',
    promise: '0 lost, duplicates only of what was in flight at the cut, recovery within 150 s',
    seconds: [45],
    layout: { ...USUAL_LAYOUT, kafkaProxy: 'dispatcher-1' },
    recoverWithinMs: () => WATCHDOG_MS,
    async inject({ proxies, pause, say, seconds }) {
      proxies.kafka?.cut();
      const atMs = Date.now();
      say(`dispatcher-1 does not reach Kafka for ${seconds} s`);
      try {
        await pause(seconds * 1_000);
      } finally {
        proxies.kafka?.mend();
      }
      return {
        endedAtMs: Date.now(),
        excuses: [inFlightAt({ sinceMs: atMs, untilMs: atMs }, 'the cut')],
      };
    },
  },
];

/**
 * An attempt is recorded 100 ms and a write after its answer (docs/decisions/0016-the-delivery-is-its-done-mark.md). On
 * a machine of two cores that also runs the stores, the write itself took up to half a second.
 */
const RECORDED_WITHIN_MS = 600;

/** How long the suite may take to read a request that has arrived, when the machine loses a third of its CPU time. */
const READ_WITHIN_MS = 100;

/** Attempts that were in flight when a process was killed, suspended or cut off may be sent again. */
export function inFlightAt({ sinceMs, untilMs }: Killed, event: string): Excuse {
  return {
    reason: `in flight at ${event}`,
    fromMs: sinceMs - RECORDED_WITHIN_MS,
    toMs: untilMs + READ_WITHIN_MS,
  };
}
