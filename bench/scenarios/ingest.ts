import { companyTopicOf } from '@posthorn/domain/ingest.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createKafkaClient, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Message as KafkaRecord, Producer } from 'kafkajs';
import { setTimeout as wait } from 'node:timers/promises';
import { rounded } from '../measure/figures.ts';
import { watchSpending } from '../measure/spending.ts';
import type { Phase } from '../measure/phase.ts';
import type { Table } from '../report/report.ts';
import { type Bench, defineScenario } from '../scenario.ts';
import { closedLoop, type Load } from '../load/loops.ts';
import { CONNECTIONS, LOAD_OPTIONS, warmUp } from './warm-up.ts';

const PREFIX = 'posthorn.';
const PARTITIONS = 12;
const PAYLOAD = JSON.stringify({ text: 'x'.repeat(1_024 - 11) });
/** Written in one request to Kafka. */
const AT_ONCE = 1_000;
const POLL_MS = 50;
/** How long a backlog may take. */
const PATIENCE_MS = 180_000;

export const ingest = defineScenario({
  summary: 'a backlog of records of a topic: accepted and delivered per second, and their cost',
  ingests: true,
  options: {
    ...LOAD_OPTIONS,
    seconds: { default: 30, meaning: 'seconds of single messages, to compare with' },
    records: { default: 60_000, meaning: 'records of the backlog' },
  },
  async run(bench, { warmup, endpoints, seconds, records }) {
    const { webhookIds } = await bench.openTargets({ count: endpoints });
    const idOf = (endpoint: number): string => requiredAt(webhookIds, endpoint, 'webhook');
    const singles: Load = {
      send: (endpoint) => bench.client.sendToWebhook(idOf(endpoint)),
      endpoints,
      signal: bench.signal,
    };
    const source = await openIngestSource(bench, webhookIds);
    await warmUp(bench, singles, { warmup });
    await source.drain(Math.ceil(records / 3));
    const single = await bench.measure({
      name: `single messages, closed loop of ${CONNECTIONS}`,
      load: () => closedLoop(singles, { connections: CONNECTIONS, seconds }),
    });
    bench.log(`Measuring: ${records} records`);
    const drained = await source.drain(records);
    await source.close();
    return {
      phases: [single],
      goals: [],
      tables: [tableOf(single, drained)],
      extra: { drained },
      isComplete: drained.delivered === records,
    };
  },
});

interface IngestSource {
  /** Writes the records, and measures until the last one is accepted and delivered. */
  drain: (records: number) => Promise<Drained>;
  close: () => Promise<void>;
}

/** Makes the topic of the company, with records for these webhooks in turn. It is found within ten seconds. */
export async function openIngestSource(
  bench: Bench,
  webhookIds: readonly string[],
): Promise<IngestSource> {
  const { stack } = bench;
  const logger = createLogger('bench', 'silent');
  const brokers = stack.addresses.kafkaBrokers.split(',');
  const kafka = createKafkaClient('posthorn-bench', { brokers }, logger);
  const topic = companyTopicOf(PREFIX, stack.credentials.companyId);
  await withAdmin(kafka, {}, (admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }] }),
  );
  const producer = kafka.producer();
  await producer.connect();
  const write = (count: number) => produce(producer, topic, { count, webhookIds });
  return {
    drain: (records) => drain(bench, () => write(records), records),
    close: () => producer.disconnect(),
  };
}

interface Backlog {
  count: number;
  webhookIds: readonly string[];
}

async function produce(
  producer: Producer,
  topic: string,
  { count, webhookIds }: Backlog,
): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE) {
    const messages = Array.from(
      { length: Math.min(AT_ONCE, count - from) },
      (_, n): KafkaRecord => {
        const webhookId = requiredAt(webhookIds, (from + n) % webhookIds.length, 'webhook');
        const headers = { 'posthorn-webhook-id': webhookId };
        return { partition: (from + n) % PARTITIONS, value: PAYLOAD, headers };
      },
    );
    await producer.send({ topic, acks: -1, messages });
  }
}

interface Drained {
  records: number;
  acceptedPerSecond: number;
  deliveredPerSecond: number;
  delivered: number;
  cpuSecondsPer1000: number | null;
  ingestCpuSecondsPer1000: number | null;
}

async function drain(
  { stack, arrivals, usage, signal }: Bench,
  write: () => Promise<void>,
  records: number,
): Promise<Drained> {
  const opsUrl = stack.opsUrlOf('ingest');
  const acceptedBefore = await acceptedBy(opsUrl);
  const arrivedBefore = arrivals.total();
  const endSpending = watchSpending(usage);
  const startedMs = performance.now();
  const seconds = (): number => (performance.now() - startedMs) / 1_000;
  const writing = write();
  const until = async (count: () => Promise<number> | number): Promise<number> => {
    while ((await count()) < records && seconds() * 1_000 < PATIENCE_MS) {
      await wait(POLL_MS, undefined, { signal });
    }
    return seconds();
  };
  const acceptedAfter = await until(async () => (await acceptedBy(opsUrl)) - acceptedBefore);
  const deliveredAfter = await until(() => arrivals.total() - arrivedBefore);
  await writing;
  const { parts, cpuSecondsPer1000 } = endSpending(records);
  return {
    records,
    acceptedPerSecond: rounded(records / acceptedAfter),
    deliveredPerSecond: rounded(records / deliveredAfter),
    delivered: arrivals.total() - arrivedBefore,
    cpuSecondsPer1000,
    ingestCpuSecondsPer1000: parts.ingest?.cpuSecondsPer1000 ?? null,
  };
}

const ACCEPTED = /^posthorn_ingest_accepted_total\{[^}]*\} (\d+)/gm;

async function acceptedBy(opsUrl: string): Promise<number> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return [...text.matchAll(ACCEPTED)].reduce((sum, [, count]) => sum + Number(count), 0);
}

function tableOf(single: Phase, drained: Drained): Table {
  return {
    title: 'Ingested beside single messages',
    rows: {
      'single messages': {
        'accepted/s': single.acceptedPerSecond,
        'delivered/s': single.deliveredPerSecond,
        'CPU s per 1,000': single.cpuSecondsPer1000,
        'of the gateway, or of ingestion': single.parts.gateway?.cpuSecondsPer1000 ?? null,
      },
      'records of a backlog': {
        'accepted/s': drained.acceptedPerSecond,
        'delivered/s': drained.deliveredPerSecond,
        'CPU s per 1,000': drained.cpuSecondsPer1000,
        'of the gateway, or of ingestion': drained.ingestCpuSecondsPer1000,
      },
    },
    notes: [`${drained.delivered} of ${drained.records} records delivered`],
  };
}
