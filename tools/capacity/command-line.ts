import { parseArgs } from 'node:util';
import type { Load } from './load.ts';

interface Option {
  load: keyof Load;
  /** Undefined when the option must be given. */
  fallback?: number;
  meaning: string;
  /** What the value must be, for the error message; the check is beside it. */
  must: string;
  accepts: (value: number) => boolean;
}

const positive = { must: 'a number above 0', accepts: (value: number) => value > 0 };
const atLeastOne = { must: 'a number of 1 or more', accepts: (value: number) => value >= 1 };
const wholeNumber = {
  must: 'a whole number of 1 or more',
  accepts: (value: number) => Number.isSafeInteger(value) && value >= 1,
};
const share = {
  must: 'a share from 0 to below 1, such as 0.02',
  accepts: (value: number) => value >= 0 && value < 1,
};

export const OPTIONS: Readonly<Record<string, Option>> = {
  rate: { load: 'messagesPerSecond', meaning: 'messages per second at the peak', ...positive },
  'fan-out': {
    load: 'targetsPerMessage',
    fallback: 1,
    meaning: 'webhooks that a message goes to, on average',
    ...positive,
  },
  days: {
    load: 'days',
    fallback: 30,
    meaning: 'RETENTION_DAYS: how long messages and deliveries are kept',
    ...wholeNumber,
  },
  'payload-bytes': {
    load: 'payloadBytes',
    fallback: 1_000,
    meaning: 'mean size of a payload',
    ...positive,
  },
  'response-bytes': {
    load: 'responseBytes',
    fallback: 100,
    meaning: 'mean size of what endpoints answer; 4,096 are kept at most',
    ...positive,
  },
  'endpoint-latency-ms': {
    load: 'endpointLatencyMs',
    fallback: 100,
    meaning: 'mean time of an attempt; one that times out takes 15,000',
    ...positive,
  },
  'failure-share': {
    load: 'failureShare',
    fallback: 0.02,
    meaning: 'share of attempts that fail',
    ...share,
  },
  growth: {
    load: 'growth',
    fallback: 2,
    meaning: 'partitions for this many times the processes needed now',
    ...atLeastOne,
  },
  'kafka-copies': {
    load: 'kafkaCopies',
    fallback: 3,
    meaning: 'TOPIC_REPLICATION: copies of each partition',
    ...wholeNumber,
  },
};

/** The command line is wrong. Its message is printed together with the help. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';
}

/** Returns null when help was asked for. Throws a CommandLineError that names what is wrong. */
export function readLoad(args: readonly string[]): Load | null {
  const given = parse(args);
  if (given.help === true) return null;
  const entries = Object.entries(OPTIONS).map(([name, option]) => [
    option.load,
    readValue(name, option, given[name]),
  ]);
  return Object.fromEntries(entries) as Load;
}

function parse(args: readonly string[]): Record<string, unknown> {
  const named = Object.keys(OPTIONS).map((name) => [name, { type: 'string' as const }]);
  const options = {
    ...(Object.fromEntries(named) as Record<string, { type: 'string' }>),
    help: { type: 'boolean' as const, short: 'h' },
  };
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new CommandLineError(error instanceof Error ? error.message : String(error));
  }
}

function readValue(name: string, { fallback, must, accepts }: Option, given: unknown): number {
  if (given === undefined && fallback !== undefined) return fallback;
  const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : NaN;
  if (Number.isFinite(value) && accepts(value)) return value;
  throw new CommandLineError(`--${name} must be ${must}`);
}

export function helpText(): string {
  const lines = Object.entries(OPTIONS).map(([name, { fallback, meaning }]) => {
    const value = fallback === undefined ? 'needed' : String(fallback);
    return `  --${name.padEnd(20)} ${value.padStart(6)}  ${meaning}`;
  });
  return `npm run capacity -- --rate 10000 --fan-out 3 --days 30

Prints what an installation for this load needs: partitions, replicas of each service, memory, CPU, and the disks of MongoDB and
Kafka, with the arithmetic. It starts nothing. docs/scaling.md has the figures that it rests on, and where they were measured.

${lines.join('\n')}`;
}
