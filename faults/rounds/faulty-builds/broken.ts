import { join } from 'node:path';
import { SERVICES } from '../../../tools/local-stack/supervisor/services.ts';
import { type Plan, usualPlan } from '../../load/plan.ts';
import type { Injected, Round, Scene } from '../../round.ts';
import { type Fleet, type Member, MEMBERS } from '../../stack/fleet.ts';
import { changeSource, copySources } from '../../stack/source-copy.ts';
import { behind } from '../frozen-changes/freezes.ts';
import { changeWhileFrozen, FROZEN_CHANGES_LAYOUT } from '../frozen-changes/frozen-changes.ts';
import { auditRecorded, untilDrained } from '../order/order-record.ts';
import { openOrderedLoad, sendInOrder } from '../order/ordered-load.ts';
import { BROKEN_BUILDS, type BrokenBuild, type InOrder } from './broken-builds.ts';

const SLOW_MS = 400;

/** Slow enough that some attempts are always in flight. */
const slowPlan: Plan = {
  ...usualPlan,
  refusalsOf: () => 0,
  replyTo: () => ({ kind: 'status', status: 200, afterMs: SLOW_MS }),
};

/** These need attempts that are in flight. */
const SLOW: ReadonlySet<BrokenBuild['shownBy']> = new Set([
  'calm, slow endpoints',
  'dispatcher killed',
]);

/** A round for each broken build, with the fault that shows what is wrong. The audit must find it. */
export const BROKEN: readonly Round[] = BROKEN_BUILDS.map((build): Round => ({
  name: `broken-${build.name}`,
  summary: `a build with a fault: ${build.summary}`,
  promise: `the audit finds one of: ${build.mustFind.join(', ')}`,
  seconds: [8],
  ...(SLOW.has(build.shownBy) && { plan: slowPlan }),
  ...(build.shownBy === 'changes frozen' && { layout: FROZEN_CHANGES_LAYOUT }),
  mustFind: build.mustFind,
  touches: SERVICES,
  spoilsStack: true,
  recoverWithinMs: () => 10_000,
  quietWithinMs: 25_000,
  inject: (scene) => show(build, scene),
}));

async function show(build: BrokenBuild, scene: Scene): Promise<Injected> {
  const root = join(scene.stackDir, 'broken');
  copySources(root);
  for (const change of build.changes) changeSource(root, change);
  scene.say('every service is restarted with the broken build');
  for (const member of MEMBERS) {
    await scene.fleet.stop(member);
    await scene.fleet.start(member, { root });
  }
  const { shownBy } = build;
  if (isInOrder(shownBy)) return showInOrder(shownBy, scene);
  if (shownBy === 'changes frozen') return changeWhileFrozen(behind, scene);
  await scene.pause(scene.seconds * 1_000);
  await faultFor(shownBy, scene);
  return { endedAtMs: Date.now() };
}

function isInOrder(shownBy: BrokenBuild['shownBy']): shownBy is InOrder {
  return shownBy.startsWith('in order');
}

const PER_KEY = 10;
/** Fast enough that most keys have a backlog at the end. */
const SENT_WITHIN_S = 4;
const STALLED_MS = 25_000;
/** The heads that failed last have been retried by then. */
const RETRIED_MS = 2_000;

async function showInOrder(shownBy: InOrder, scene: Scene): Promise<Injected> {
  const load = await openOrderedLoad(scene, PER_KEY);
  await sendInOrder(load, { ...scene, seconds: SENT_WITHIN_S });
  if (shownBy === 'in order, dispatchers killed') {
    await scene.pause(RETRIED_MS);
    await faultFor('dispatcher killed', scene);
  }
  const endedAtMs = Date.now();
  await untilDrained(load, scene, { stalledMs: STALLED_MS });
  return { endedAtMs, findings: await auditRecorded(load, scene) };
}

async function faultFor(
  shownBy: Exclude<BrokenBuild['shownBy'], InOrder>,
  { fleet, stores, pause }: Scene,
): Promise<void> {
  switch (shownBy) {
    case 'calm':
    case 'calm, slow endpoints':
    case 'changes frozen':
      return;
    case 'dispatcher killed':
      return killAndStart(fleet, ['dispatcher-1', 'dispatcher-2']);
    case 'gateway killed':
      return killAndStart(fleet, ['gateway-1', 'gateway-2']);
    case 'unpublished':
      stores.kafka.freeze();
      await pause(2_000);
      await killAndStart(fleet, ['gateway-1', 'gateway-2'], () => {
        stores.kafka.thaw();
      });
  }
}

async function killAndStart(
  fleet: Fleet,
  members: readonly Member[],
  between?: () => void,
): Promise<void> {
  await Promise.all(members.map((member) => fleet.kill(member)));
  between?.();
  for (const member of members) await fleet.start(member);
}
