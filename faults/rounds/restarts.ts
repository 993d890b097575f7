import { CLOSED_CONNECTION, REFUSED_CONNECTION } from '../load/client.ts';
import type { Round } from '../round.ts';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { MEMBERS } from '../stack/fleet.ts';

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
    async inject({ fleet, pause, say, seconds }) {
      const endsAtMs = Date.now() + seconds * 1_000;
      for (let changes = 1; Date.now() < endsAtMs; changes += 2) {
        await fleet.stop('dispatcher-2');
        await pause(EVERY_MS);
        await fleet.start('dispatcher-2');
        say(`${changes + 1} rebalances`);
        await pause(EVERY_MS);
      }
      return { endedAtMs: Date.now() };
    },
  },
];

const EVERY_MS = 5_000;
