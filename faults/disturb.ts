import type { Excuse } from './audit/evidence.ts';
import { CLOSED_CONNECTION, REFUSED_CONNECTION } from './load/client.ts';
import type { Round, Scene } from './round.ts';
import { serviceOf } from './stack/launch-service.ts';

/** What a client gets from a gateway that was stopped, until it is started again. */
const ANSWERS_OF_A_STOP = [REFUSED_CONNECTION, CLOSED_CONNECTION];

interface Allowed {
  excuses: Excuse[];
  answers: readonly string[];
}

/** The SIGTERM comes before this share of the fault has passed. */
const LATEST = 0.9;

/**
 * Stops one service with SIGTERM at a random moment of the fault, in addition to the fault. Its exit code and time are
 * audited with the others; it is started again after the fault. Returns the duplicates and the responses that are
 * allowed because of it.
 */
export async function stopOneSomewhen(scene: Scene, round: Round): Promise<Allowed> {
  const { fleet, random, seconds, pause, say } = scene;
  const touched = round.touches ?? [];
  const members = fleet.running().filter((member) => !touched.includes(serviceOf(member)));
  const member = members[Math.floor(random() * members.length)];
  if (!member) return { excuses: [], answers: [] };
  const fromMs = Date.now();
  await pause(random() * seconds * 1_000 * LATEST);
  say(`${member} gets SIGTERM`);
  await fleet.stop(member);
  say(`${member} has ended`);
  const answers = serviceOf(member) === 'gateway' ? ANSWERS_OF_A_STOP : [];
  if (!round.keepsNothing) return { excuses: [], answers };
  const reason = `${member} was stopped while nothing could be recorded`;
  return { excuses: [{ reason, fromMs, toMs: Date.now() }], answers };
}
