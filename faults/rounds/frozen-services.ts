import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../load/client.ts';
import { ANSWER_WITHIN_MS, type Round } from '../round.ts';
import type { Member } from '../stack/fleet.ts';
import { serviceOf } from '../stack/launch-service.ts';
import { USUAL_LAYOUT } from '../stack/layout.ts';
import { inFlightAt } from './excuses.ts';

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
