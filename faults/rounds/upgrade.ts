import { join, relative } from 'node:path';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import { CLOSED_CONNECTION, REFUSED_CONNECTION } from '../load/client.ts';
import { type Plan, usualPlan } from '../load/plan.ts';
import type { Round, Scene } from '../round.ts';
import { appsOf } from './holds.ts';
import { type SignedInPerson, startIssuerOfRound } from './signed-in-person.ts';
import { type Changed, type Member, MEMBERS, USUAL_LAYOUT } from '../stack/fleet.ts';
import { checkOutSources, lastTag } from '../stack/source-copy.ts';

const ROOT = join(import.meta.dirname, '../..');
const SLOW_ENDPOINT = 1;
const SLOW_MS = 1_300;

/** The usual plan with one slow endpoint, whose records go through the slow lane. */
const withSlowEndpoint: Plan = {
  ...usualPlan,
  replyTo: (n, endpoint, nth) => {
    const reply = usualPlan.replyTo(n, endpoint, nth);
    return endpoint === SLOW_ENDPOINT ? { ...reply, afterMs: SLOW_MS } : reply;
  },
};

export const UPGRADE: Round = {
  name: 'upgrade',
  touches: SERVICES,
  summary:
    'rolling restarts under load: to the older version, to this one, back, and forward again, while a company is on hold and a person is signed in',
  promise:
    '0 lost, 0 duplicates, no retry early; each version reads what the other has written, waiting deliveries too, and takes the session of a person for its role',
  seconds: [10],
  layout: USUAL_LAYOUT,
  answers: [REFUSED_CONNECTION, CLOSED_CONNECTION],
  losesNoAnswer: true,
  plan: withSlowEndpoint,
  recoverWithinMs: () => 60_000,
  spoilsStack: true,
  async inject(scene) {
    const { reference, why } = olderVersion(scene.against, lastTag());
    const root = join(scene.stackDir, 'older');
    scene.say(`checking out ${reference}, ${why}`);
    await checkOutSources(reference, root);
    // An installation that is upgraded has the indexes of the older version, which its services wait for.
    await scene.run(relative(ROOT, join(root, 'deploy/setup/create-indexes.ts')));
    const apps = await appsOf(scene, scene.companies.slice(0, 1));
    await apps.hold();
    const issuer = await startIssuerOfRound(scene);
    try {
      const { env } = issuer;
      await rollTo(scene, { name: 'an issuer', changed: { env }, members: GATEWAYS });
      const person = await issuer.signIn();
      for (const [name, changed] of [
        [reference, { root, env }],
        ['this version', { env }],
        [reference, { root, env }],
        ['this version', { env }],
      ] as const) {
        await rollTo(scene, { name, changed, members: MEMBERS, person });
      }
      const findings = await person.end();
      await apps.resume();
      return { endedAtMs: Date.now(), findings };
    } finally {
      await issuer.close();
    }
  },
};

/**
 * What the round upgrades from while no version has a tag. Versions read what the one before them wrote from 1.0.0 on, so
 * until then this is a commit that reads what the present one writes.
 */
export const BEFORE_THE_FIRST_TAG = '427efc6f';

/** Returns the git reference that the round upgrades from, and why this one. */
export function olderVersion(
  against: string | undefined,
  tag: string | null,
): { reference: string; why: string } {
  if (against !== undefined) return { reference: against, why: 'named with --against' };
  if (tag !== null) return { reference: tag, why: 'the last tag' };
  return { reference: BEFORE_THE_FIRST_TAG, why: 'because there is no tag' };
}

const GATEWAYS: readonly Member[] = ['gateway-1', 'gateway-2'];

interface Rolled {
  name: string;
  changed: Changed;
  members: readonly Member[];
  /** Whose session every gateway must take after each restart. */
  person?: SignedInPerson;
}

async function rollTo(
  { fleet, pause, say, seconds }: Scene,
  { name, changed, members, person }: Rolled,
): Promise<void> {
  for (const member of members) {
    say(`${member} → ${name}`);
    await fleet.stop(member);
    await fleet.start(member, changed);
    await person?.check(`with ${member} at ${name}`);
  }
  await pause(seconds * 1_000);
}
