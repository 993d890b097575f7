import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import type { OptionValues, Scenario, ScenarioOptions } from './scenario.ts';

export interface Command {
  name: string;
  scenario: Scenario;
  values: OptionValues<ScenarioOptions>;
  isProfiling: boolean;
  /** The stores are kept for the next run that keeps them too. */
  keepsStores: boolean;
}

/** The command line is wrong. Its message is printed together with the help. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';
}

/** Returns null when help was asked for. Throws a CommandLineError that names what is wrong. */
export function readCommand(
  args: readonly string[],
  scenarios: Readonly<Record<string, Scenario>>,
): Command | null {
  const [name = '', ...rest] = args;
  if (name === '--help' || name === '-h') return null;
  const scenario = Object.hasOwn(scenarios, name) ? scenarios[name] : undefined;
  if (scenario === undefined) throw new CommandLineError(unknownScenario(name));
  const given = parseRest(rest, scenario);
  if (given.help === true) return null;
  const values = Object.entries(scenario.options).map(([option, declared]) => [
    option,
    valueOf(option, given[option], declared),
  ]);
  return {
    name,
    scenario,
    values: Object.fromEntries(values) as Command['values'],
    isProfiling: given.profile === true,
    keepsStores: given.keep === true,
  };
}

function unknownScenario(name: string): string {
  return name === '' ? 'Name a scenario.' : `There is no scenario "${name}".`;
}

function parseRest(rest: string[], scenario: Scenario): Record<string, unknown> {
  const options: ParseArgsOptionsConfig = {
    profile: { type: 'boolean' },
    keep: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  };
  for (const option of Object.keys(scenario.options)) options[option] = { type: 'string' };
  try {
    return parseArgs({ args: rest, options }).values;
  } catch (error) {
    throw new CommandLineError(error instanceof Error ? error.message : String(error));
  }
}

function valueOf(option: string, given: unknown, declared: ScenarioOptions[string]) {
  if (given === undefined) return declared.default;
  if ('choices' in declared) {
    const choice = declared.choices.find((each) => each === given);
    if (choice !== undefined) return choice;
    throw new CommandLineError(`--${option} must be ${declared.choices.join(' or ')}.`);
  }
  if (typeof declared.default === 'string') return given as string;
  const value = Number(given);
  if (given !== '' && Number.isFinite(value) && value > 0) return value;
  throw new CommandLineError(`--${option} must be a number above 0.`);
}

export function helpOf(scenarios: Readonly<Record<string, Scenario>>): string {
  return `npm run bench -- SCENARIO [--OPTION VALUE …] [--profile] [--keep]

Starts its own Kafka, MongoDB, Redis and the three services in a temporary folder, sends load over loopback, prints the
measurements beside their targets, and writes bench/results/SCENARIO-TIME.json. It ends by itself; Ctrl-C ends it
earlier. The exit code is 1 when a message is missing or was refused. A missed target is only reported.

--profile  also writes CPU profiles of the services to bench/results/profiles, for the developer tools of a browser
--keep     keeps the stores for the next run with --keep, which continues with their data; a run without it deletes them

${Object.entries(scenarios).map(scenarioHelp).join('\n\n')}`;
}

function scenarioHelp([name, { summary, options }]: [string, Scenario]): string {
  const lines = Object.entries(options).map(
    ([option, { default: fallback, meaning }]) =>
      `  --${option.padEnd(12)} ${String(fallback).padStart(7)}  ${meaning}`,
  );
  return [`${name}: ${summary}`, ...lines].join('\n');
}
