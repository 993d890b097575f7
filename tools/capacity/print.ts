import type { Capacity } from './capacity.ts';
import type { Load } from './load.ts';
import { figure, type Section } from './sheet.ts';

export function capacityText(load: Load, capacity: Capacity): string {
  const { messagesPerSecond, targetsPerMessage, days } = load;
  const title = `${figure(messagesPerSecond)} messages a second, each to ${figure(targetsPerMessage)} webhooks, kept for ${figure(days)} days`;
  return [title, ...capacity.sections.map(sectionText), summary(capacity)].join('\n\n');
}

function sectionText({ title, lines }: Section): string {
  const rows = lines.map(({ what, how, value, unit, kind }) => {
    const result = `= ${figure(value)} ${unit}`;
    return kind === 'product'
      ? `  ${what}: ${how}\n      ${result}`
      : `  ${what}: ${how}\n      → ${figure(value)} ${unit}`;
  });
  return [title, ...rows].join('\n');
}

/** The most that `TOPIC_PARTITIONS` takes. */
const MAX_PARTITIONS = 1_000;

function partitionsText(partitions: number): string {
  return partitions <= MAX_PARTITIONS
    ? `${partitions}`
    : `${figure(partitions)}, more than the ${figure(MAX_PARTITIONS)} that one installation can have: divide the load`;
}

function summary({ processes, replicaSteps, mongodb, kafka, ...totals }: Capacity): string {
  const { gateways, dispatchers, retryProcesses, partitions } = processes;
  const rows = [
    ['TOPIC_PARTITIONS', partitionsText(partitions)],
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
