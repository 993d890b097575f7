import { companyTopicOf } from '@posthorn/domain/ingest.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { createKafkaClient, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Message as KafkaRecord } from 'kafkajs';
import { setTimeout as wait } from 'node:timers/promises';
import { rounded } from '../measure/figures.ts';
import { watchSpending } from '../measure/spending.ts';
import { metricIn, readMetrics } from '../measure/metrics.ts';
import type { Bench } from '../scenario.ts';
import { inWorkers } from '../load/loops.ts';

const PREFIX = 'posthorn.';
const PARTITIONS = 12;
const PAYLOAD = JSON.stringify({ text: 'x'.repeat(1_024 - 11) });
/** Written in one request to Kafka. */
const RECORDS_AT_ONCE = 1_000;
const POLL_MS = 50;
/** How long a backlog may take. */
const PATIENCE_MS = 180_000;

/** Makes the topic of the company, with records for these webhooks in turn. It is found within ten seconds. */
export async function openIngestSource(
  { stack, arrivals, usage, signal }: Bench,
  webhookIds: readonly string[],
) {
  const logger = createLogger('bench', 'silent');
  const brokers = stack.addresses.kafkaBrokers.split(',');
  const kafka = createKafkaClient('posthorn-bench', { brokers }, logger);
  const topic = companyTopicOf(PREFIX, stack.credentials.companyId);
  await withAdmin(kafka, {}, (admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }] }),
  );
  const producer = kafka.producer();
  await producer.connect();
  const write = (count: number): Promise<void> =>
    inWorkers(count, { size: RECORDS_AT_ONCE, atOnce: 1 }, async (from, length) => {
      const messages = Array.from({ length }, (_, n) => recordOf(from + n, webhookIds));
      await producer.send({ topic, acks: -1, messages });
    });
  const opsUrl = stack.opsUrlOf('ingest');
  const accepted = async (): Promise<number> =>
    metricIn(await readMetrics(opsUrl), 'posthorn_ingest_accepted_total') ?? 0;
  return {
    /** Writes the records, and measures until the last one is accepted and delivered. */
    async drain(records: number) {
      const [acceptedBefore, arrivedBefore] = [await accepted(), arrivals.total()];
      const endSpending = watchSpending(usage);
      const startedMs = performance.now();
      const writing = write(records);
      /** Returns after how many seconds it was so. */
      const until = async (isOver: () => Promise<boolean> | boolean): Promise<number> => {
        const endMs = startedMs + PATIENCE_MS;
        while (!(await isOver()) && performance.now() < endMs) {
          await wait(POLL_MS, undefined, { signal });
        }
        return (performance.now() - startedMs) / 1_000;
      };
      const acceptedAfter = await until(async () => (await accepted()) - acceptedBefore >= records);
      const deliveredAfter = await until(() => arrivals.total() - arrivedBefore >= records);
      await writing;
      const { parts, cpuSecondsPer1000 } = endSpending(records);
      return {
        records,
        acceptedPerSecond: rounded(records / acceptedAfter),
        deliveredPerSecond: rounded(records / deliveredAfter),
        delivered: arrivals.total() - arrivedBefore,
        parts,
        cpuSecondsPer1000,
      };
    },
    close: () => producer.disconnect(),
  };
}

const recordOf = (n: number, webhookIds: readonly string[]): KafkaRecord => ({
  partition: n % PARTITIONS,
  value: PAYLOAD,
  headers: { 'posthorn-webhook-id': requiredAt(webhookIds, n % webhookIds.length, 'webhook') },
});
