import type { Excuse, Finding } from './audit/evidence.ts';
import type { Book } from './load/book.ts';
import type { Plan } from './load/plan.ts';
import type { FaultStack } from './stack/start-stack.ts';
import type { Layout } from './stack/fleet.ts';

/** The tools of a fault while the load runs. */
export interface Scene extends FaultStack {
  /** How long the fault lasts, or how long faults go on. */
  seconds: number;
  /** From 0 to below 1; the seed is in the report. */
  random: () => number;
  book: Book;
  /** How many times this round was run before: 0 for the first run. */
  repetition: number;
  /** How many records are ingested, or messages sent in order, when the command line says so. */
  records: number | undefined;
  /** The git reference of an older version, when the command line names one. */
  against: string | undefined;
  /** Waits, unless the suite is stopped. */
  pause: (ms: number) => Promise<void>;
  /** Waits for a condition; throws after `withinMs`. */
  until: (what: string, check: () => Promise<boolean> | boolean, withinMs: number) => Promise<void>;
  /** Changes how the endpoints respond from now on. */
  answerBy: (plan: Plan) => void;
  /** Shown in the progress line and in the report. */
  say: (what: string) => void;
}

/** The information that a fault passes to the audit. */
export interface Injected {
  /** When the last part of the fault was over, in milliseconds since 1970. */
  endedAtMs: number;
  excuses?: Excuse[];
  /** Responses to the client that are allowed besides those of the round. */
  answers?: readonly string[];
  /** Messages that were accepted in this time are no longer in the store. */
  forgotten?: { fromMs: number; toMs: number };
  /** Records were deleted with their topic, so that they cannot be counted. */
  areRecordsDeleted?: boolean;
  /** Findings of the fault itself, reported besides those of the audit. */
  findings?: readonly (string | Finding)[];
}

/** Promised in docs/reliability.md. */
const PROMISED_MS = 10_000;
/** The suite shares the processor with six services and three stores, and may read a response that much later. */
const READ_WITHIN_MS = 500;
/** How long a response of the API may take. */
export const ANSWER_WITHIN_MS = PROMISED_MS + READ_WITHIN_MS;

/** One kind of fault and what must hold through it. */
export interface Round {
  name: string;
  summary: string;
  /** What must hold, in words; shown by `--list`. */
  promise: string;
  /** The lengths that it is run with unless `--seconds` is given. */
  seconds: readonly number[];
  layout?: Layout;
  plan?: Plan;
  /** Responses to the client that are allowed besides 202. */
  answers?: readonly string[];
  /** How long a response may take, in milliseconds; `ANSWER_WITHIN_MS` by default. */
  answerWithinMs?: (seconds: number) => number;
  /** A message whose response was lost must not have been accepted. */
  losesNoAnswer?: boolean;
  /** How many message-created records more than deliveries may be published; not limited unless given. */
  maxCopies?: (deliveries: number) => number;
  /** How long after the fault messages may be late; null when that is only reported. */
  recoverWithinMs: ((seconds: number) => number) | null;
  /** Of a build that is broken on purpose: the audit must report at least one of these findings. */
  mustFind?: readonly string[];
  /** How long deliveries may take to end after the load; three minutes by default. */
  quietWithinMs?: number;
  /** The services that the fault itself starts and stops: `--sigterm` chooses another one. */
  touches?: readonly string[];
  /** Outcomes of attempts cannot be recorded during the fault. */
  keepsNothing?: boolean;
  /** The stack cannot be used for another round. */
  spoilsStack?: boolean;
  inject: (scene: Scene) => Promise<Injected>;
}

/** A round that needs no stack, such as the simulation. `runAlone` returns its findings. */
export interface LoneRound {
  name: string;
  summary: string;
  promise: string;
  seconds: readonly number[];
  runAlone: (options: {
    seconds: number;
    signal: AbortSignal;
    log: (line: string) => void;
  }) => Promise<string[]>;
}

export type AnyRound = Round | LoneRound;

/** How long a response of the API may take in this round, in milliseconds. */
export function answerLimitMs({ answerWithinMs }: Round, seconds: number): number {
  return answerWithinMs?.(seconds) ?? ANSWER_WITHIN_MS;
}
