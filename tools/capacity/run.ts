import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { podMemoryLimits } from '../../bench/pod-limits.ts';
import { planCapacity, type Capacity } from './capacity.ts';
import { OPTIONS, type Load } from './constants.ts';
import { figure, type Section } from './sheet.ts';

/** The command line is wrong. Its message is printed together with the help. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';
}

/** Returns null when help was asked for. Throws a CommandLineError that names what is wrong. */
export function readLoad(args: readonly string[]): Load | null {
  const given = parse(args);
  if (given.help === true) return null;
  const entries = Object.entries(OPTIONS).map(([name, [load, fallback, { must, accepts }]]) => {
    const text = given[name];
    if (text === undefined && fallback !== undefined) return [load, fallback];
    const value = typeof text === 'string' && text.trim() !== '' ? Number(text) : NaN;
    if (Number.isFinite(value) && accepts(value)) return [load, value];
    throw new CommandLineError(`--${name} must be ${must}`);
  });
  return Object.fromEntries(entries) as Load;
}

function parse(args: readonly string[]): Record<string, unknown> {
  const options: ParseArgsOptionsConfig = { help: { type: 'boolean', short: 'h' } };
  for (const name of Object.keys(OPTIONS)) options[name] = { type: 'string' };
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new CommandLineError(error instanceof Error ? error.message : String(error));
  }
}

export function helpText(): string {
  const lines = Object.entries(OPTIONS).map(([name, [, fallback, , meaning]]) => {
    const value = String(fallback ?? 'needed');
    return `  --${name.padEnd(20)} ${value.padStart(6)}  ${meaning}`;
  });
  return `npm run capacity -- --rate 10000 --fan-out 3 --days 30

Prints what an installation for this load needs: partitions, replicas of each service, memory, CPU, and the disks of MongoDB and
Kafka, with the arithmetic. It starts nothing. docs/scaling.md has the figures that it rests on, and where they were measured.

${lines.join('\n')}`;
}

export function capacityText(load: Load, capacity: Capacity): string {
  const { messagesPerSecond, targetsPerMessage, days } = load;
  const title = `${figure(messagesPerSecond)} messages a second, each to ${figure(targetsPerMessage)} webhooks, kept for ${figure(days)} days`;
  return [title, ...capacity.sections.map(sectionText), summary(capacity)].join('\n\n');
}

function sectionText({ title, lines }: Section): string {
  const rows = lines.map(
    ({ what, how, sign, value, unit }) =>
      `  ${what}: ${how}\n      ${sign} ${figure(value)} ${unit}`,
  );
  return [title, ...rows].join('\n');
}

/** The most that `TOPIC_PARTITIONS` takes. */
const MAX_PARTITIONS = 1_000;

function summary({ processes, replicaSteps, mongodb, kafka, ...totals }: Capacity): string {
  const { gateways, dispatchers, retryProcesses, partitions } = processes;
  const tooMany = `, more than the ${figure(MAX_PARTITIONS)} that one installation can have: divide the load`;
  const rows = [
    ['TOPIC_PARTITIONS', `${partitions}${partitions > MAX_PARTITIONS ? tooMany : ''}`],
    ['gateway', `${gateways} pods`],
    ['dispatcher', `${dispatchers} pods; steps for scaling: ${replicaSteps.join(', ')}`],
    ['retry', `${retryProcesses} pods; the same steps`],
    ['memory of the pods', `${figure(totals.memoryMebibytes / 1_024)} GiB`],
    ['CPU of the pods', `${figure(totals.cores)} cores`],
    [
      'MongoDB',
      `3 members, each ${figure(mongodb.diskTerabytes)} TB; primary ${figure(mongodb.cores)} cores`,
    ],
    [
      'Kafka',
      `${kafka.brokers} brokers or more, together ${figure(kafka.diskTerabytes)} TB and ${figure(kafka.megabytesPerSecond)} MB/s written`,
    ],
  ];
  const lines = rows.map(([name = '', value = '']) => `  ${name.padEnd(20)} ${value}`);
  return ['Result', ...lines].join('\n');
}

if (import.meta.main) {
  try {
    const load = readLoad(process.argv.slice(2));
    console.log(load ? capacityText(load, planCapacity(load, podMemoryLimits())) : helpText());
  } catch (error) {
    if (!(error instanceof CommandLineError)) throw error;
    console.error(`${error.message}\n\n${helpText()}`);
    process.exitCode = 2;
  }
}
