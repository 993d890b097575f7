import { parseArgs } from 'node:util';
import { RESULTS } from './report.ts';
import type { AnyRound } from './round.ts';

export interface Command {
  kind: 'run';
  rounds: readonly AnyRound[];
  /** How long each fault lasts; the lengths of the round when undefined. */
  seconds: number | undefined;
  rate: number;
  repetitions: number;
  seed: number;
  /** One more service gets SIGTERM at a random moment of each fault. */
  hasSigterm: boolean;
  /** How many records the round of ingestion has, and how many messages that of order. */
  records: number | undefined;
  /** The git reference of the older version of an upgrade round. */
  against: string | undefined;
  /** Where the results are written as one JSON document. */
  jsonPath: string | undefined;
  /** The folder of the results and logs. */
  resultsPath: string;
}

export interface CommandLine {
  rounds: readonly AnyRound[];
  /** Names of the rounds of `--short`. */
  short: readonly string[];
}

/** The command line is wrong. Its message is printed together with the help. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';
}

const DEFAULT_RATE = 100;
/** Enough for one fault of each kind, and little enough that other tests run beside it. */
const SHORT_SECONDS = 5;
const SHORT_RATE = 25;

/** Throws a CommandLineError that names what is wrong. */
export function readCommand(
  args: string[],
  { rounds, short }: CommandLine,
): Command | { kind: 'help' } | { kind: 'list' } {
  const { values, positionals } = parse(args);
  if (values.help) return { kind: 'help' };
  if (values.list) return { kind: 'list' };
  const names = values.short ? [...short] : positionals;
  if (values.short && positionals.length > 0) {
    throw new CommandLineError('--short names its rounds itself; leave out the names.');
  }
  const seconds = numberOf('seconds', values.seconds);
  return {
    kind: 'run',
    rounds: names.length === 0 ? rounds : selected(rounds, names),
    seconds: seconds ?? (values.short ? SHORT_SECONDS : undefined),
    rate: numberOf('rate', values.rate) ?? (values.short ? SHORT_RATE : DEFAULT_RATE),
    repetitions: wholeNumberOf('rounds', values.rounds) ?? 1,
    seed: wholeNumberOf('seed', values.seed) ?? Date.now() % 2 ** 31,
    hasSigterm: values.sigterm ?? false,
    records: wholeNumberOf('records', values.records),
    against: values.against,
    jsonPath: values.json,
    resultsPath: values.results ?? RESULTS,
  };
}

function parse(args: string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        seconds: text,
        rate: text,
        rounds: text,
        seed: text,
        records: text,
        against: text,
        json: text,
        results: text,
        short: flag,
        sigterm: flag,
        list: flag,
        help: { ...flag, short: 'h' },
      },
    });
  } catch (error) {
    throw new CommandLineError(error instanceof Error ? error.message : String(error));
  }
}

/** `F5` selects `F5-frozen` and `F5-killed` as well. */
function selected(rounds: readonly AnyRound[], names: readonly string[]): AnyRound[] {
  const found = names.flatMap((name) => {
    const matching = rounds.filter((round) => isNamed(round.name, name));
    if (matching.length === 0) {
      throw new CommandLineError(
        `There is no round "${name}". Those that exist: npm run faults -- --list`,
      );
    }
    return matching;
  });
  return [...new Set(found)];
}

function isNamed(round: string, name: string): boolean {
  const [is, wanted] = [round.toLowerCase(), name.toLowerCase()];
  return is === wanted || is.startsWith(`${wanted}-`);
}

function numberOf(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (given.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new CommandLineError(`--${option} must be a number above 0, but it is "${given}".`);
}

function wholeNumberOf(option: string, given: string | undefined): number | undefined {
  const value = numberOf(option, given);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new CommandLineError(`--${option} must be a whole number, but it is "${given ?? ''}".`);
}

export function helpOf({ rounds, short }: CommandLine): string {
  return `npm run faults -- [ROUND …] [--seconds N] [--rate N] [--rounds N]

Starts its own Kafka, MongoDB and Redis in a temporary folder and two processes of each service, sends constant load
through the API, injects one fault after the other, waits until every delivery has ended, and compares the
promised deliveries with the received requests. It needs the native stack (STACK=native) and ends by itself; Ctrl-C ends it earlier. The exit
code is 1 when anything is wrong. Results: faults/results/ROUND-TIME.json.

ROUND       a name, or how several begin: F5 is F5-frozen, F5-killed and every other F5-…; without one, all rounds
--seconds   how long each fault lasts (the lengths that --list shows)
--rate      messages per second (${DEFAULT_RATE})
--rounds    how often each round is run (1)
--seed      seed of the random moments; it is in the results
--sigterm   one more service gets SIGTERM at a random moment of each fault
--records   how many records F16 ingests, and how many messages order sends (20,000)
--against   the git reference that the upgrade round upgrades from (the last tag, or a fixed commit without one)
--short     what npm test runs: ${short.join(', ')}; ${SHORT_SECONDS} s each, ${SHORT_RATE} messages per second
--json      also writes all results into this file
--results   the folder for the results (faults/results)
--list      shows the rounds, and what must hold in each

${rounds.map((round) => `  ${round.name.padEnd(22)} ${round.summary}`).join('\n')}`;
}

export function listOf(rounds: readonly AnyRound[]): string {
  const lines = rounds.map(
    ({ name, summary, seconds, promise }) =>
      `${name} (${seconds.join(', ')} s): ${summary}\n  holds: ${promise}`,
  );
  return lines.join('\n');
}
