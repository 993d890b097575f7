import type { Redis } from 'ioredis';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { readMetrics } from './watch-memory.ts';

/** What stores and services have counted since they were started, by name. */
export type Counts = Readonly<Record<string, number>>;

export interface WorkCounts {
  /** When they were read, in milliseconds; between two readings: how long that was. */
  ms: number;
  /** `collection/operation` → statements. The collections of days are counted as one. */
  statements: Counts;
  /** Command → how often MongoDB ran it. */
  mongodb: Counts;
  /** Command → how often Redis ran it. */
  redis: Counts;
  /** Process of a service → its metrics, by `name{labels}`. */
  metrics: Readonly<Record<string, Counts>>;
}

interface Sources {
  admin: mongo.Admin;
  redis: Pick<Redis, 'info'>;
  /** Process of a service → its management address. */
  opsUrls: ReadonlyMap<string, string>;
}

export async function readWork({ admin, redis, opsUrls }: Sources): Promise<WorkCounts> {
  const [top, status, info, metrics] = await Promise.all([
    admin.command({ top: 1 }),
    admin.command({ serverStatus: 1 }),
    redis.info('commandstats'),
    Promise.all(
      [...opsUrls].map(
        async ([name, url]) => [name, metricCounts(await readMetrics(url))] as const,
      ),
    ),
  ]);
  return {
    ms: performance.now(),
    statements: statementCounts(top),
    mongodb: commandCounts(status),
    redis: redisCounts(info),
    metrics: Object.fromEntries(metrics),
  };
}

const counter = z.object({ count: z.number() });
const topReply = z.object({ totals: z.record(z.string(), z.unknown()) });
/** MongoDB counts a `find` as a query; `aggregate` and `count` as commands. */
const topEntry = z.object({
  queries: counter,
  commands: counter,
  getmore: counter,
  insert: counter,
  update: counter,
  remove: counter,
});

const DAY = /[._]?\d{4}-\d\d-\d\d$/;

/** Reads the reply to `top`. */
export function statementCounts(reply: unknown): Counts {
  const counts: Record<string, number> = {};
  for (const [namespace, value] of Object.entries(topReply.parse(reply).totals)) {
    // Beside the collections there is a note, and entries of the system.
    const entry = topEntry.safeParse(value);
    if (!entry.success || !namespace.startsWith('posthorn')) continue;
    const collection = namespace.replace(/^posthorn\./, '').replace(DAY, '');
    for (const [operation, { count }] of Object.entries(entry.data)) {
      const name = `${collection}/${operation}`;
      counts[name] = (counts[name] ?? 0) + count;
    }
  }
  return counts;
}

const statusReply = z.object({
  metrics: z.object({ commands: z.record(z.string(), z.unknown()) }),
});
const commandEntry = z.object({ total: z.coerce.number() });

function commandCounts(reply: unknown): Counts {
  const { commands } = statusReply.parse(reply).metrics;
  const counts = Object.entries(commands).flatMap(([name, value]) => {
    const entry = commandEntry.safeParse(value);
    return entry.success ? [[name, entry.data.total] as const] : [];
  });
  return Object.fromEntries(counts);
}

/** Reads lines such as `cmdstat_get:calls=12,usec=34,…`. */
export function redisCounts(info: string): Counts {
  const found = info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
  return Object.fromEntries([...found].map(([, command = '', calls]) => [command, Number(calls)]));
}

const METRIC = /^(posthorn_\w+(?<!_bucket)(?:\{.*\})?) (\S+)$/gm;

/** Reads the metrics of Posthorn in the text of a metrics endpoint, without the buckets of histograms. */
export function metricCounts(text: string): Counts {
  const found = text.matchAll(METRIC);
  return Object.fromEntries([...found].map(([, name = '', value]) => [name, Number(value)]));
}

/** Returns by how much each count has grown, without those that have not. */
export function growthOf(before: Counts, after: Counts): Counts {
  const grown = Object.entries(after).map(
    ([name, count]) => [name, count - (before[name] ?? 0)] as const,
  );
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

/** Returns what was counted between two readings. */
export function workBetween(before: WorkCounts, after: WorkCounts): WorkCounts {
  const metrics = Object.entries(after.metrics).map(([name, counts]) => [
    name,
    growthOf(before.metrics[name] ?? {}, counts),
  ]);
  return {
    ms: after.ms - before.ms,
    statements: growthOf(before.statements, after.statements),
    mongodb: growthOf(before.mongodb, after.mongodb),
    redis: growthOf(before.redis, after.redis),
    metrics: Object.fromEntries(metrics) as WorkCounts['metrics'],
  };
}

/** What a service has to know of a message before it can be accepted and sent. */
const CONFIGURATION = ['companies', 'apiKeys', 'projects', 'apps', 'webhooks', 'signingKeys'];
/** `getmore` is left out: it is what a change stream waits with, and a list of a hundred webhooks has none. */
const READS = ['queries', 'commands'];

/** Returns the number of statements that read configuration. */
export function configurationReads(statements: Counts): number {
  const names = CONFIGURATION.flatMap((collection) =>
    READS.map((operation) => `${collection}/${operation}`),
  );
  return sumOf(statements, (name) => names.includes(name));
}

export function sumOf(counts: Counts, isCounted: (name: string) => boolean): number {
  return Object.entries(counts).reduce(
    (sum, [name, count]) => (isCounted(name) ? sum + count : sum),
    0,
  );
}

export interface CacheUse {
  requests: number;
  /** Percent of the requests. */
  hits: number;
}

const CACHE_REQUESTS = /^(\w+)_cache_requests_total\{(.*)\}$/;
const RESULT = /,?(?:result|outcome)="(\w+)"/;

/** Returns the use of each cache that counts its requests by result, one of which is "hit". */
export function cacheUse(metrics: Counts): Record<string, CacheUse> {
  const totals = new Map<string, { requests: number; hits: number }>();
  for (const [name, count] of Object.entries(metrics)) {
    const [, family = '', labels = ''] = CACHE_REQUESTS.exec(name) ?? [];
    if (family === '') continue;
    const cache = `${family}{${labels.replace(RESULT, '').replace(/^,/, '')}}`;
    const total = totals.get(cache) ?? { requests: 0, hits: 0 };
    totals.set(cache, total);
    total.requests += count;
    if (RESULT.exec(labels)?.[1] === 'hit') total.hits += count;
  }
  return Object.fromEntries(
    [...totals].map(([cache, { requests, hits }]) => [
      cache,
      { requests, hits: Number(((100 * hits) / requests).toFixed(2)) },
    ]),
  );
}
