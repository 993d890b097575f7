import { isAccepting } from './audit/accepting.ts';
import { audit, type Verdict } from './audit/audit.ts';
import type { Finding } from './audit/finding.ts';
import { LAG_MS } from './audit/recovery.ts';
import { collectEvidence } from './collect-evidence.ts';
import { stopOneSomewhen } from './disturb.ts';
import { type OpenScene, openScene, type RoundRun } from './open-scene.ts';
import type { RoundResult } from './report/result.ts';
import { answerLimitMs, type Injected, type Round, type Scene } from './round.ts';
import { MEMBERS, startMembers } from './stack/fleet.ts';
import type { FaultStack } from './stack/start-stack.ts';

/** How long the load runs before the fault. */
const BEFORE_MS = 4_000;
/** How long the load runs after the recovery. */
const AFTER_MS = 8_000;
/** The sweep runs every two seconds, and takes over a gateway ten seconds after its last heartbeat. */
const SWEPT_WITHIN_MS = 15_000;
const QUIET_MS = 2_000;
/** How long deliveries may take to end after the load. */
const QUIESCENCE_MS = 180_000;
/** DRAIN_TIMEOUT_MS, and ten seconds to close. */
export const STOP_WITHIN_MS = 35_000;

/** Puts a stack under load, injects the fault, waits until every delivery has ended, and audits. */
export async function runRound(options: RoundRun): Promise<RoundResult> {
  const { round, stack, rate, repetition, seconds, seed } = options;
  const open = await openScene(options);
  const { scene, traffic, notes, startedAtMs, show } = open;
  try {
    await scene.pause(BEFORE_MS);
    const injected = await injectAll(scene, options);
    await startMissing(stack);
    show('the fault is over');
    await untilRecovered(scene, round.recoverWithinMs?.(seconds) ?? QUIESCENCE_MS);
    await traffic.stop();
    show('waiting until every delivery has ended');
    await untilQuiet(scene, injected, round.quietWithinMs ?? QUIESCENCE_MS);
    const verdict = await judge(options, open, injected);
    const startedAt = new Date(startedAtMs).toISOString();
    return { round: round.name, repetition, seconds, rate, seed, startedAt, verdict, notes };
  } finally {
    await open.close();
  }
}

async function injectAll(scene: Scene, { round, hasSigterm }: RoundRun): Promise<Injected> {
  const [injected, stopped] = await Promise.all([
    round.inject(scene),
    hasSigterm ? stopOneSomewhen(scene, round) : null,
  ]);
  if (!stopped) return injected;
  const excuses = [...(injected.excuses ?? []), ...stopped.excuses];
  return { ...injected, excuses, answers: stopped.answers };
}

/** Waits until new messages are accepted and arrive in time again. The audit decides whether that took too long. */
async function untilRecovered({ book, until, pause }: Scene, limitMs: number): Promise<void> {
  const isBehind = (): boolean => Date.now() - (book.oldestUnseenAtMs() ?? Infinity) > LAG_MS;
  const isRecovered = (): boolean => !isBehind() && isAccepting(book.sent, Date.now() - LAG_MS);
  await until('recovery', isRecovered, limitMs).catch(rethrowAbort);
  await pause(AFTER_MS);
}

/** Waits until every delivery has ended and no request comes any more. The audit decides about what is still pending. */
async function untilQuiet(
  { book, until }: Scene,
  { endedAtMs }: Injected,
  withinMs: number,
): Promise<void> {
  const isQuiet = (): boolean => {
    const nowMs = Date.now();
    return (
      book.counts().waiting === 0 &&
      nowMs - endedAtMs > SWEPT_WITHIN_MS &&
      nowMs - book.lastArrivalAtMs() > QUIET_MS
    );
  };
  await until('quiescence', isQuiet, withinMs).catch(rethrowAbort);
}

function rethrowAbort(error: unknown): void {
  if (error instanceof Error && error.name === 'AbortError') throw error;
}

/** A fault may leave members stopped; recovery and audit need them all. */
async function startMissing({ fleet }: FaultStack): Promise<void> {
  const running = new Set(fleet.running());
  await startMembers(
    fleet,
    MEMBERS.filter((member) => !running.has(member)),
  );
}

async function judge(
  { round, seconds }: RoundRun,
  { scene, traffic, plan, startedAtMs, recordsBefore }: OpenScene,
  injected: Injected,
): Promise<Verdict> {
  const evidence = await collectEvidence({
    scene,
    traffic,
    injected,
    sinceMs: startedAtMs,
    recordsBefore,
    plan: plan(),
    hasClockJumps: round.hasClockJumps ?? false,
  });
  const verdict = audit(evidence, {
    endedAtMs: injected.endedAtMs,
    recoverWithinMs: round.recoverWithinMs?.(seconds) ?? null,
    stopWithinMs: STOP_WITHIN_MS,
    answerWithinMs: answerLimitMs(round, seconds),
    answers: [...(round.answers ?? []), ...(injected.answers ?? [])],
    losesNoAnswer: round.losesNoAnswer ?? false,
    maxCopies: round.maxCopies ?? null,
  });
  const { notSent = 0 } = verdict;
  if (notSent > 0) scene.say(`${notSent} messages not sent: too many had no response yet`);
  const own = (injected.findings ?? []).map((what) => ({ what, count: 1, examples: [] }));
  return { ...verdict, findings: judged(round, scene, [...verdict.findings, ...own]) };
}

/** A build that is broken on purpose passes when the audit has found what is wrong with it. */
function judged({ mustFind }: Round, { say }: Scene, findings: Finding[]): Finding[] {
  if (!mustFind) return findings;
  const found = findings.filter(({ what }) => mustFind.includes(what));
  for (const { what, count } of found) say(`found: ${what} (${count})`);
  if (found.length > 0) return [];
  const others = findings.map(({ what, count }) => `found instead: ${what} (${count})`);
  return [{ what: 'the audit did not notice the broken build', count: 1, examples: others }];
}
