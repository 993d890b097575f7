import { setTimeout as wait } from 'node:timers/promises';
import { isAccepting, audit, type Verdict, LAG_MS } from './audit/audit.ts';
import type { Finding, Excuse } from './audit/evidence.ts';
import { collectEvidence, countCreatedRecords } from './collect-evidence.ts';
import type { RoundResult } from './report.ts';
import { answerLimitMs, type Injected, type Round, type Scene } from './round.ts';
import { MEMBERS, startMembers, DELAYS_MS, serviceOf } from './stack/fleet.ts';
import type { FaultStack } from './stack/start-stack.ts';
import { createRandom } from '../test/support/samples/seeded-random.ts';
import { eventually } from '../test/support/time/eventually.ts';
import { createBook, type Book } from './load/book.ts';
import { type Plan, usualPlan } from './load/plan.ts';
import { startTraffic, type Traffic } from './load/traffic.ts';
import { CLOSED_CONNECTION, REFUSED_CONNECTION } from './load/client.ts';

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
    hasSigterm ? stopOneAtRandom(scene, round) : null,
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
  const { notSent } = verdict;
  if (notSent > 0) scene.say(`${notSent} messages not sent: too many had no response yet`);
  const own = (injected.findings ?? []).map(asFinding);
  return { ...verdict, findings: judged(round, scene, [...verdict.findings, ...own]) };
}

function asFinding(found: string | Finding): Finding {
  return typeof found === 'string' ? { what: found, count: 1, examples: [] } : found;
}

/** A build that is broken on purpose passes when the audit has found its fault. */
function judged({ mustFind }: Round, { say }: Scene, findings: Finding[]): Finding[] {
  if (!mustFind) return findings;
  const found = findings.filter(({ what }) => mustFind.includes(what));
  for (const { what, count } of found) say(`found: ${what} (${count})`);
  if (found.length > 0) return [];
  const others = findings.map(({ what, count }) => `found instead: ${what} (${count})`);
  return [{ what: 'the audit did not notice the broken build', count: 1, examples: others }];
}

interface RoundRun {
  round: Round;
  stack: FaultStack;
  seconds: number;
  rate: number;
  repetition: number;
  seed: number;
  records: number | undefined;
  against: string | undefined;
  hasSigterm: boolean;
  signal: AbortSignal;
}

/** The load of a running round, and the tools of its fault. */
interface OpenScene {
  scene: Scene;
  traffic: Traffic;
  /** How the endpoints respond now. */
  plan: () => Plan;
  /** The reports of the fault so far. */
  notes: readonly string[];
  startedAtMs: number;
  /** How many message-created records had been published before the load. */
  recordsBefore: number;
  /** Shows what the suite itself does, in the progress line only. */
  show: (what: string) => void;
  close: () => Promise<void>;
}

/** Opens endpoints, starts the load and the progress line. */
async function openScene(options: RoundRun): Promise<OpenScene> {
  const { round, stack, rate, repetition, seconds, seed, signal, records, against } = options;
  const startedAtMs = Date.now();
  const run = `${round.name.toLowerCase()}-${repetition}-${startedAtMs}`;
  const recordsBefore = await countCreatedRecords(stack.stores.addresses.kafkaBrokers);
  const book = createBook(DELAYS_MS.length + 1);
  let current: Plan = round.plan ?? usualPlan;
  const plan = (): Plan => current;
  const traffic = await startTraffic({ stack, run, rate, plan, book, signal });
  const name = `${round.name} ${repetition + 1}`;
  const progress = startProgress({ name, book, answers: traffic.answers });
  const notes: string[] = [];
  const scene: Scene = {
    ...stack,
    seconds,
    book,
    repetition,
    records,
    against,
    random: createRandom(seed),
    ...waitsOf(signal),
    answerBy: (next) => {
      current = next;
    },
    say: (what) => {
      notes.push(what);
      progress.say(what);
    },
  };
  const close = async (): Promise<void> => {
    progress.stop();
    stack.receiver.closeRound(run);
    await traffic.close();
  };
  return {
    scene,
    traffic,
    plan,
    notes,
    startedAtMs,
    recordsBefore,
    show: progress.say,
    close,
  };
}

function waitsOf(signal: AbortSignal): Pick<Scene, 'pause' | 'until'> {
  return {
    pause: (ms) => wait(ms, undefined, { signal }),
    async until(what, check, withinMs) {
      const unlessStopped = (): Promise<boolean> | boolean => {
        signal.throwIfAborted();
        return check();
      };
      await eventually(what, unlessStopped, withinMs);
    },
  };
}

/** The answers that a client gets while a gateway is stopped. */
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
async function stopOneAtRandom(scene: Scene, round: Round): Promise<Allowed> {
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

interface Progress {
  /** Shown until the next report. */
  say: (what: string) => void;
  stop: () => void;
}

interface ProgressOptions {
  name: string;
  book: Book;
  answers: () => Readonly<Record<string, number>>;
}

/** A terminal overwrites the line; in a file each line stays, so fewer are written. */
const EVERY_MS = process.stdout.isTTY ? 500 : 5_000;

/** Prints a line about the running round, at a fixed interval. */
function startProgress(options: ProgressOptions): Progress {
  const startedMs = performance.now();
  let shown = 'load before the fault';
  const print = (): void => {
    const line = progressLine(options, (performance.now() - startedMs) / 1_000, shown);
    process.stdout.write(process.stdout.isTTY ? `\r\x1b[2K${line}` : `${line}\n`);
  };
  const timer = setInterval(print, EVERY_MS).unref();
  return {
    say: (what) => {
      shown = what;
      print();
    },
    stop: () => {
      clearInterval(timer);
      if (process.stdout.isTTY) process.stdout.write('\r\x1b[2K');
    },
  };
}

function progressLine(
  { name, book, answers }: ProgressOptions,
  seconds: number,
  shown: string,
): string {
  const { accepted, delivered, waiting } = book.counts();
  const others = Object.entries(answers())
    .filter(([answer]) => answer !== '202')
    .map(([answer, count]) => `, ${count} × ${answer}`);
  const clock = `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
  return `${name}  ${clock}  accepted ${accepted}, delivered ${delivered}, waiting ${waiting}${others.join('')}  ${shown}`;
}
