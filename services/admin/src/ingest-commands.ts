import { ingestGroupId } from '@posthorn/domain/ingest.ts';
import { type LagReason, sentenceOfLag } from '@posthorn/domain/ingest-lag.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import { readTopics } from '@posthorn/platform/kafka/connect.ts';
import {
  createGroupPositions,
  type GroupPosition,
} from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { readTopic } from '@posthorn/platform/kafka/read-topic.ts';
import { keyOf } from '@posthorn/platform/kafka/record-log.ts';
import { readLagCauses } from '@posthorn/platform/records/lag-causes.ts';
import { connectRedis, redisAccessOf } from '@posthorn/platform/redis/connect.ts';
import {
  createIngestReports,
  type IngestReports,
} from '@posthorn/platform/redis/ingest-reports.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { StoredReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import type { Command } from 'commander';
import type { Kafka } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { z } from 'zod';
import { beginningOf, createNewest } from './dead-letter-commands.ts';
import { replayRejected } from './ingest-replay.ts';
import {
  ingestConfig,
  matches,
  openClusters,
  parseFilter,
  readRejects,
  withFilters,
} from './ingest-topics.ts';
import { isoTime, parseLimit, parsePlace, silent } from './letters.ts';
import { escapeControls, formatTable, type OutputOptions, printResult } from './output.ts';

/** Adds `ingest lag|rejected list|show|replay` (docs/ingest.md). */
export function addIngestCommands(program: Command): void {
  const group = program
    .command('ingest')
    .description('Messages from topics of Kafka (docs/ingest.md)');
  group
    .command('lag')
    .description('show how far ingestion is behind, for each partition of each source')
    .option('--json', 'print JSON')
    .action(showLag);
  const rejected = group.command('rejected').description('records that cannot be accepted');
  withFilters(rejected.command('list'))
    .description('list rejected records, newest first')
    .option('--limit <count>', 'most entries to show, 1 to 10000', '100')
    .option('--json', 'print JSON')
    .action(listRejected);
  rejected
    .command('show <id>')
    .description('show one rejected record with its headers and its value')
    .option('--json', 'print JSON')
    .action(showRejected);
  withFilters(rejected.command('replay'))
    .description('write rejected records into their topics again')
    .option('--all', 'every rejected record; with filters, those that match')
    .option('--partition <number>', 'partition of one rejected record, as the list shows it')
    .option('--offset <number>', 'offset of it')
    .option('--dry-run', 'only show what would be done')
    .option('--json', 'print JSON')
    .action(replayRejected);
}

const { REDIS_URL } = settings.redis;
/** Without Redis the reasons of processes are unknown. */
const lagConfig = ingestConfig.extend({ ...settings.redis, REDIS_URL: REDIS_URL.optional() });

interface PartitionLag {
  topic: string;
  partition: number;
  /** The offset of the next record; -1 before the first one was read. */
  next: number;
  records: number;
  /** Age of the next record in seconds; null when there is none. */
  seconds: number | null;
  /** Why it waits; null when there is none. */
  reason: LagReason | null;
  /** The reason as a sentence. */
  because: string | null;
}

async function showLag(output: OutputOptions): Promise<void> {
  const config = parseConfig('admin', lagConfig, process.env);
  const { all, sourcesIn } = await openClusters(config);
  const { reports, close } = await openReports(config);
  const lags: PartitionLag[] = [];
  try {
    for (const { cluster, kafka } of all) {
      const topics = [...sourcesIn(cluster, (await readTopics(kafka)).keys()).keys()];
      lags.push(...(await lagOf({ cluster, kafka, reports }, config.TOPIC_PREFIX, topics)));
    }
  } finally {
    close();
  }
  if (output.json) printResult(output, { partitions: lags });
  else process.stdout.write(`${formatTable(lags.map(rowOf))}\n`);
}

function rowOf({ seconds, reason, because, ...lag }: PartitionLag) {
  return { ...lag, seconds: seconds ?? '', reason: reason ?? '', because: because ?? '' };
}

type Reports = Pick<IngestReports, 'read'>;

async function openReports(
  config: z.infer<typeof lagConfig>,
): Promise<{ reports: Reports; close: () => void }> {
  const { REDIS_URL: url } = config;
  if (url === undefined) {
    const read: Reports['read'] = () => Promise.resolve(new Map());
    return { reports: { read }, close: () => undefined };
  }
  const redis = connectRedis(redisAccessOf({ ...config, REDIS_URL: url }), silent());
  // A command that comes before the connection is refused.
  if (redis.status !== 'ready') {
    await withTimeout(once(redis, 'ready'), REDIS_WITHIN_MS).catch(() => undefined);
  }
  const close = (): void => {
    redis.disconnect();
  };
  return { reports: createIngestReports(redis, config.REDIS_PREFIX), close };
}

/** As `admin doctor` waits. */
const REDIS_WITHIN_MS = 5_000;

interface LagParts {
  cluster: string;
  kafka: Kafka;
  reports: Reports;
}

async function lagOf(
  { cluster, kafka, reports }: LagParts,
  prefix: string,
  topics: readonly string[],
): Promise<PartitionLag[]> {
  if (topics.length === 0) return [];
  const positions = createGroupPositions(kafka, { groupId: ingestGroupId(prefix), topics });
  const found = await positions.read();
  const causes = await readLagCauses({ positions, reports, cluster }, found);
  await positions.close();
  const lags: PartitionLag[] = [];
  for (const topic of topics) {
    const ofTopic = found.filter((each) => each.topic === topic);
    const times = await timesOfNext(kafka, prefix, ofTopic);
    for (const { partition, committed: next, lag: records } of ofTopic) {
      const atMs = times.get(partition);
      const seconds = atMs === undefined ? null : Math.max(0, Date.now() - atMs) / 1_000;
      const cause = causes.get(keyOf({ topic, partition }));
      const because = cause ? sentenceOfLag(cause) : null;
      const reason = cause?.reason ?? null;
      lags.push({ topic, partition, next, records, seconds, reason, because });
    }
  }
  return lags;
}

/** Returns the time of the next record of each partition that has one. */
async function timesOfNext(
  kafka: Kafka,
  prefix: string,
  positions: readonly GroupPosition[],
): Promise<ReadonlyMap<number, number>> {
  const behind = positions.filter(({ lag }) => lag > 0);
  const times = new Map<number, number>();
  const [first] = behind;
  if (!first) return times;
  await readTopic(kafka, {
    topic: first.topic,
    only: behind.map(({ partition, endOffset, lag }) => ({ partition, offset: endOffset - lag })),
    groupId: `${prefix}admin-${randomUUID()}`,
    logger: silent(),
    visit: ({ partition, atMs }) => Promise.resolve(void times.set(partition, atMs)),
  });
  return times;
}

/** Prints the newest rejected records that match, and how many match in all. */
async function listRejected(options: OutputOptions & { limit: string }): Promise<void> {
  const filter = parseFilter(options);
  const newest = createNewest<StoredReject>(parseLimit(options.limit));
  const config = parseConfig('admin', ingestConfig, process.env);
  const { own } = await openClusters(config);
  await readRejects(own, config.TOPIC_PREFIX, { sinceMs: filter.since }, (reject) => {
    // Without the record itself: the list may have thousands.
    const record = { key: null, value: null, headers: {} };
    if (matches(reject, filter)) newest.add({ ...reject, record });
    return Promise.resolve();
  });
  const shown = newest.entries().map(summarize);
  if (options.json) {
    printResult(options, { matched: newest.added(), rejected: shown });
    return;
  }
  for (const { partition, offset, at, code, source, message } of shown) {
    const line = [`${partition}:${offset}`, at, code, source ?? '', message].join('  ');
    process.stdout.write(`${escapeControls(line)}\n`);
  }
  process.stdout.write(`${shown.length} of ${newest.added()} rejected records\n`);
}

/** Prints one rejected record, which the list names. */
async function showRejected(id: string, output: OutputOptions): Promise<void> {
  const { isExhausted, partition, offset } = parsePlace(id);
  if (isExhausted) throw new Error('id must be partition:offset, as the list shows it.');
  const config = parseConfig('admin', ingestConfig, process.env);
  const { own } = await openClusters(config);
  const found: StoredReject[] = [];
  await readRejects(own, config.TOPIC_PREFIX, { only: [{ partition, offset }] }, (reject) =>
    Promise.resolve(void found.push(reject)),
  );
  const [reject] = found;
  if (!reject) throw new Error(`There is no rejected record ${partition}:${offset}.`);
  printResult(output, describeReject(reject));
}

/** The longest value that is shown whole. A payload of a message has 256 KiB. */
const SHOWN_BYTES = 262_144;

/** A rejected record as a person reads it: texts as they are, other bytes in hexadecimal digits. */
export function describeReject(reject: StoredReject): object {
  const { key, value, headers } = reject.record;
  const shown = Object.entries(headers ?? {}).flatMap(([name, values]) =>
    [values].flat().map((each) => ({ name, ...(each && partOf(Buffer.from(each))) })),
  );
  return {
    ...summarize(reject),
    key: key && partOf(key),
    headers: shown,
    bytes: value?.length ?? null,
    value: value && partOf(value),
  };
}

const partOf = (bytes: Buffer): object => beginningOf(bytes, SHOWN_BYTES);

function summarize({ partition, offset, atMs, code, message, place, cutFromBytes }: StoredReject) {
  const source = place && `${place.topic} ${place.partition}:${place.offset}`;
  const cut = cutFromBytes !== null && { cutFromBytes };
  return { partition, offset, at: isoTime(atMs), code, message, source, ...cut };
}
