import type { Redis } from 'ioredis';
import type { mongo } from 'mongoose';
import { z } from 'zod';
import { rounded } from './figures.ts';
import { type Counts, metricCounts, readMetrics } from './metrics.ts';

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
      [...opsUrls].map(async ([name, url]) => ({ [name]: metricCounts(await readMetrics(url)) })),
    ),
  ]);
  return {
    ms: performance.now(),
    statements: statementCounts(top),
    mongodb: commandCounts(status),
    redis: redisCounts(info),
    metrics: Object.assign({}, ...metrics) as WorkCounts['metrics'],
  };
}

/** MongoDB counts a `find` as a query; `aggregate` and `count` as commands. */
export const OPERATIONS = ['queries', 'commands', 'getmore', 'insert', 'update', 'remove'];
const topReply = z.object({ totals: z.record(z.string(), z.unknown()) });
const topEntry = z.record(z.string(), z.object({ count: z.number() }));

const DAY = /[._]?\d{4}-\d\d-\d\d$/;

/** Reads the reply to `top`. */
export function statementCounts(reply: unknown): Counts {
  const counts: Record<string, number> = {};
  for (const [namespace, value] of Object.entries(topReply.parse(reply).totals)) {
    // Beside the collections there is a note, and entries of the system.
    const entry = topEntry.safeParse(value);
    if (!entry.success || !namespace.startsWith('posthorn')) continue;
    const collection = namespace.replace(/^posthorn\./, '').replace(DAY, '');
    for (const operation of OPERATIONS) {
      const name = `${collection}/${operation}`;
      counts[name] = (counts[name] ?? 0) + (entry.data[operation]?.count ?? 0);
    }
  }
  return counts;
}

const statusReply = z.object({
  metrics: z.object({ commands: z.record(z.string(), z.unknown()) }),
});
const commandEntry = z.object({ total: z.coerce.number() });

function commandCounts(reply: unknown): Counts {
  const counts: Record<string, number> = {};
  for (const [name, value] of Object.entries(statusReply.parse(reply).metrics.commands)) {
    const entry = commandEntry.safeParse(value);
    if (entry.success) counts[name] = entry.data.total;
  }
  return counts;
}

/** Reads lines such as `cmdstat_get:calls=12,usec=34,…`. */
export function redisCounts(info: string): Counts {
  const found = info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
  return Object.fromEntries([...found].map(([, command = '', calls]) => [command, Number(calls)]));
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
const READ = /^(.*)\/(?:queries|commands)$/;

/** Returns the number of statements that read configuration. */
export const configurationReads = (statements: Counts): number =>
  sumOf(statements, (name) => CONFIGURATION.includes(READ.exec(name)?.[1] ?? ''));

export function sumOf(counts: Counts, isCounted: (name: string) => boolean): number {
  const counted = Object.entries(counts).filter(([name]) => isCounted(name));
  return counted.reduce((sum, [, count]) => sum + count, 0);
}

const CACHE_REQUESTS = /^(\w+)_cache_requests_total\{(.*)\}$/;
const RESULT = /,?(?:result|outcome)="(\w+)"/;

/** Returns the use of each cache that counts its requests by result, one of which is "hit". */
export function cacheUse(metrics: Counts): Record<string, { requests: number; 'hits, %': number }> {
  const byCache = Map.groupBy(
    Object.entries(metrics).flatMap(([name, count]) => {
      const [, family, labels = ''] = CACHE_REQUESTS.exec(name) ?? [];
      if (family === undefined) return [];
      const cache = `${family}{${labels.replace(RESULT, '').replace(/^,/, '')}}`;
      return [{ cache, count, hits: RESULT.exec(labels)?.[1] === 'hit' ? count : 0 }];
    }),
    ({ cache }) => cache,
  );
  const use = [...byCache].map(([cache, all]) => {
    const requests = all.reduce((sum, { count }) => sum + count, 0);
    const hits = all.reduce((sum, each) => sum + each.hits, 0);
    return [cache, { requests, 'hits, %': rounded((100 * hits) / requests, 2) }] as const;
  });
  return Object.fromEntries(use);
}
