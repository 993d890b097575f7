import type { Excuse } from './audit/evidence.ts';
import type { Round, Scene } from './round.ts';
import { serviceOf } from './stack/launch-service.ts';

/** Longest part of the fault before the SIGTERM, as a share of its length. */
const LATEST = 0.9;

/**
 * Stops one service with SIGTERM at a random moment of the fault, beside what the fault itself does. Its exit code and
 * time are audited with the others; it is started again after the fault. Returns what may be repeated because of it.
 */
export async function stopOneSomewhen(scene: Scene, round: Round): Promise<Excuse[]> {
  const { fleet, random, seconds, pause, say } = scene;
  const touched = round.touches ?? [];
  const members = fleet.running().filter((member) => !touched.includes(serviceOf(member)));
  const member = members[Math.floor(random() * members.length)];
  if (!member) return [];
  const fromMs = Date.now();
  await pause(random() * seconds * 1_000 * LATEST);
  say(`${member} gets SIGTERM`);
  await fleet.stop(member);
  say(`${member} has ended`);
  if (!round.keepsNothing) return [];
  const reason = `${member} was stopped while nothing could be recorded`;
  return [{ reason, fromMs, toMs: Date.now() }];
}
