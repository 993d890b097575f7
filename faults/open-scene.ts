import { setTimeout as wait } from 'node:timers/promises';
import { createRandom } from '../test/support/samples/seeded-random.ts';
import { eventually } from '../test/support/time/eventually.ts';
import { createBook } from './load/book.ts';
import { countCreatedRecords } from './load/count-records.ts';
import { type Plan, usualPlan } from './load/plan.ts';
import { startTraffic, type Traffic } from './load/traffic.ts';
import { startProgress } from './report/progress.ts';
import type { Round, Scene } from './round.ts';
import { DELAYS_MS } from './stack/layout.ts';
import type { FaultStack } from './stack/start-stack.ts';

export interface RoundRun {
  round: Round;
  stack: FaultStack;
  seconds: number;
  rate: number;
  repetition: number;
  seed: number;
  against: string | undefined;
  hasSigterm: boolean;
  signal: AbortSignal;
}

/** The load of a round that runs, and what its fault may use. */
export interface OpenScene {
  scene: Scene;
  traffic: Traffic;
  /** How the endpoints respond now. */
  plan: () => Plan;
  /** What the fault has reported so far. */
  notes: readonly string[];
  startedAtMs: number;
  /** How many message-created records had been published before the load. */
  recordsBefore: number;
  /** Shows what the suite itself does, in the progress line only. */
  show: (what: string) => void;
  close: () => Promise<void>;
}

/** Opens endpoints, starts the load and the progress line. */
export async function openScene(options: RoundRun): Promise<OpenScene> {
  const { round, stack, rate, repetition, seconds, seed, signal, against } = options;
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
