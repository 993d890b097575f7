import { DAY_MS } from '@posthorn/domain/ids.ts';
import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import { withTimeout } from '@posthorn/platform/async/pause.ts';
import { connectMongo, mongoTlsOf } from '@posthorn/platform/mongo/connect.ts';
import { UNIQUE_INDEXES } from '@posthorn/platform/mongo/create-indexes.ts';
import { DAY_KINDS, dayDatabaseName } from '@posthorn/platform/mongo/days/days.ts';
import { readLayout } from '@posthorn/platform/mongo/days/layout.ts';
import { databaseClockMs } from '@posthorn/platform/mongo/database-time.ts';
import { findMissing, hasCode, readAppliedIndexes } from '@posthorn/platform/mongo/indexes.ts';
import { egressPolicyOf, egressProxySettings } from '@posthorn/platform/security/egress.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Command } from 'commander';
import type { mongo } from 'mongoose';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { z } from 'zod';
import { databaseConfig } from './command.ts';
import { escapeControls, type OutputOptions, printResult } from './output.ts';
import { examineTopics, type Examination, topicsConfig } from './topic-commands.ts';

/** As that of `posthorn doctor`. */
export interface Check {
  name: string;
  /** `warn` also where a check cannot be made, because a right is missing. */
  status: 'ok' | 'warn' | 'fail';
  message: string;
}

type Result = Omit<Check, 'name'>;

const ok = (message: string): Result => ({ status: 'ok', message });
const warn = (message: string): Result => ({ status: 'warn', message });
const fail = (message: string): Result => ({ status: 'fail', message });

/** That of a check which found something, as of `posthorn doctor`. */
const CHECK_FAILED = 5;
const CHECK_TIMEOUT_MS = 30_000;
const UNAUTHORIZED = 13;
const NO_REPLICATION = 76;

/** Adds `doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check stores, topics, clock and disk; exit code 5 if one fails')
    .option('--json', 'print JSON')
    .action(async (output: OutputOptions) => {
      const checks = await examine();
      const isOk = checks.every(({ status }) => status !== 'fail');
      if (!isOk) process.exitCode = CHECK_FAILED;
      if (output.json) printResult(output, { ok: isOk, checks });
      else process.stdout.write(checks.map(lineOf).join(''));
    });
}

function lineOf({ name, status, message }: Check): string {
  return `${status.padEnd(4)}  ${name.padEnd(10)}  ${escapeControls(message)}\n`;
}

async function examine(): Promise<Check[]> {
  return [
    await check('topics', async () => {
      const config = parseConfig('admin', topicsConfig, process.env);
      return judgeTopics(await examineTopics(config));
    }),
    ...(await checkMongo()),
    await check('redis', checkRedis),
    await check('egress', checkEgress),
  ];
}

/** An error that a check throws is its result. */
async function check(name: string, work: () => Promise<Result>): Promise<Check> {
  try {
    return { name, ...(await withTimeout(work(), CHECK_TIMEOUT_MS)) };
  } catch (error) {
    if (!hasCode(error, UNAUTHORIZED)) return { name, ...fail(messageOf(error)) };
    return { name, ...warn(`Not known: the MongoDB user lacks a right (${messageOf(error)})`) };
  }
}

export function judgeTopics({
  topics,
  missing,
  drifts,
  unpinned,
}: Pick<Examination, 'topics' | 'missing' | 'drifts' | 'unpinned'>): Result {
  const refused = drifts.filter(({ severity }) => severity === 'refuse').length;
  const message = `${topics} topics, ${missing.length} missing, ${drifts.length} differences`;
  if (missing.length > 0 || refused > 0) {
    return fail(`${message}, with ${refused} of which services do not start: see topics check`);
  }
  if (drifts.length > 0) return warn(`${message}: see topics check`);
  if (unpinned.length === 0) return ok(message);
  return warn(`${message}, ${unpinned.length} settings by the defaults of the brokers`);
}

async function checkMongo(): Promise<Check[]> {
  let mongo: Awaited<ReturnType<typeof connectMongo>>;
  try {
    const config = parseConfig('admin', databaseConfig, process.env);
    mongo = await connectMongo(config.MONGODB_URL, 'posthorn-admin', mongoTlsOf(config));
  } catch (error) {
    return [{ name: 'mongodb', ...fail(messageOf(error)) }];
  }
  const { db } = mongo;
  try {
    return [
      await check('mongodb', () => checkReplicaSet(db)),
      await check('indexes', () => checkIndexes(db)),
      await check('clock', async () => judgeClock((await databaseClockMs(db)) - Date.now())),
      await check('disk', () => checkDisk(db)),
    ];
  } finally {
    await mongo.close();
  }
}

/** The reply of MongoDB to `hello`. */
export interface Hello {
  setName?: string;
  /** `isdbgrid` of a router of a sharded cluster. */
  msg?: string;
  hosts?: string[];
}

/** The members as `replSetGetStatus` lists them; null where this user may not see them. */
export type Members = { name: string; health: number; stateStr: string }[] | null;

async function checkReplicaSet(db: mongo.Db): Promise<Result> {
  const hello = (await db.command({ hello: 1 })) as Hello;
  return judgeReplicaSet(hello, await readMembers(db));
}

async function readMembers(db: mongo.Db): Promise<Members> {
  try {
    const { members } = await db.admin().command({ replSetGetStatus: 1 });
    return members as Members;
  } catch (error) {
    if (hasCode(error, UNAUTHORIZED) || hasCode(error, NO_REPLICATION)) return null;
    throw error;
  }
}

export function judgeReplicaSet({ setName, msg, hosts = [] }: Hello, members: Members): Result {
  if (msg === 'isdbgrid') return ok('A sharded cluster; see the replica set of each shard');
  if (setName === undefined) {
    return fail('MongoDB is no replica set: change streams and majority writes need one');
  }
  const count = members?.length ?? hosts.length;
  const name = `The replica set ${setName} has ${count} ${count === 1 ? 'member' : 'members'}`;
  const away = (members ?? []).filter(({ health }) => health !== 1);
  const majority = Math.floor(count / 2) + 1;
  if (away.length > 0) {
    const which = away.map((each) => `${each.name} is ${each.stateStr}`).join(', ');
    const isLost = count - away.length < majority;
    return isLost ? fail(`${name}, and no majority: ${which}`) : warn(`${name}: ${which}`);
  }
  if (count < 3) return warn(`${name}: while one is away, nothing is accepted`);
  return ok(`${name}, and a majority while ${count - majority} of them are away`);
}

async function checkIndexes(db: mongo.Db): Promise<Result> {
  const missing = await findMissing(db, UNIQUE_INDEXES);
  const pending = (await readAppliedIndexes(db))?.pending ?? [];
  if (missing.length > 0) {
    return fail(`Missing: ${missing.join(', ')}. Run deploy/setup/create-indexes.ts`);
  }
  if (pending.length > 0) return warn(`Not finished: ${pending.join(', ')}. Queries are slow`);
  return ok(`The ${UNIQUE_INDEXES.length} unique indexes exist, and none is being built`);
}

/** Messages are stored by the clocks of the services (docs/decisions/0019-clocks-that-are-wrong.md). */
export function judgeClock(differenceMs: number): Result {
  const seconds = (Math.abs(differenceMs) / 1_000).toFixed(1);
  const message = `MongoDB is ${seconds} s ${differenceMs > 0 ? 'ahead of' : 'behind'} this process`;
  if (Math.abs(differenceMs) > 60_000) return fail(`${message}: signatures are ${seconds} s off`);
  return Math.abs(differenceMs) > 5_000 ? warn(message) : ok(message);
}

/** In bytes and days. */
export interface DiskUse {
  used: number;
  /** Null where MongoDB does not say. */
  free: number | null;
  /** Since the first message could be stored. */
  ageDays: number;
  retentionDays: number;
}

async function checkDisk(db: mongo.Db): Promise<Result> {
  const layout = await readLayout(db);
  if (!layout) return fail('There is no layout of collections: run deploy/setup/create-indexes.ts');
  const names = [
    db.databaseName,
    ...DAY_KINDS.map((kind) => dayDatabaseName(db.databaseName, kind)),
  ];
  let used = 0;
  let free: number | null = null;
  for (const name of names) {
    const stats = await db.client.db(name).command({ dbStats: 1 });
    used += Number(stats.storageSize) + Number(stats.indexSize);
    if (stats.fsTotalSize !== undefined) {
      free = Number(stats.fsTotalSize) - Number(stats.fsUsedSize);
    }
  }
  return judgeDisk({
    used,
    free,
    ageDays: Math.max(1, (Date.now() - layout.beginMs) / DAY_MS),
    retentionDays: layout.retentionMs / DAY_MS,
  });
}

const GB = 1_000_000_000;
const gb = (bytes: number): string => `${(bytes / GB).toFixed(1)} GB`;
/** MongoDB needs room for its journal, and for building an index. */
const LEAST_FREE_BYTES = 2 * GB;

/** Messages of each day are kept for the retention, so what is used grows until the first days go. */
export function judgeDisk({ used, free, ageDays, retentionDays }: DiskUse): Result {
  const growth = ageDays < retentionDays ? (used / ageDays) * (retentionDays - ageDays) : 0;
  const message = `${gb(used)} used`;
  if (free === null) return warn(`${message}; MongoDB does not say how much is free`);
  const text = `${message}, ${gb(free)} free`;
  if (free < LEAST_FREE_BYTES) return fail(`${text}: MongoDB stops when the disk is full`);
  const grown = `${text}; the retention of ${retentionDays} days needs about ${gb(growth)} more`;
  return growth > free ? warn(grown) : ok(grown);
}

const redisConfig = z.object(settings.redis);

async function checkRedis(): Promise<Result> {
  const config = parseConfig('admin', redisConfig, process.env);
  // Loaded only here, as the client of Kafka for topics apply.
  const { connectRedis, redisAccessOf } = await import('@posthorn/platform/redis/connect.ts');
  const redis = connectRedis(redisAccessOf(config), createLogger('admin', 'silent'));
  try {
    if (redis.status !== 'ready') await withTimeout(once(redis, 'ready'), 5_000);
    return judgeRedis(await redis.info());
  } catch (error) {
    return fail(`Redis does not answer, and services go on without it: ${messageOf(error)}`);
  } finally {
    redis.disconnect();
  }
}

/** `info` is the reply to INFO. */
export function judgeRedis(info: string): Result {
  const fields = new Map(info.split(/\r?\n/).map((line) => line.split(':') as [string, string]));
  const policy = fields.get('maxmemory_policy') ?? 'unknown';
  const limit = Number(fields.get('maxmemory') ?? 0);
  const used = `${fields.get('used_memory_human') ?? 'unknown memory'} used`;
  const message = `Redis ${fields.get('redis_version') ?? ''} answers, ${used}, ${policy}`;
  // Without a limit nothing is evicted.
  return limit > 0 && policy !== 'noeviction'
    ? warn(`${message}: it drops rate limits and circuits when it is full; set noeviction`)
    : ok(message);
}

const egressConfig = z.object({ ...settings.egress, ...egressProxySettings });

async function checkEgress(): Promise<Result> {
  const config = parseConfig('admin', egressConfig, process.env);
  const proxy = config.EGRESS_PROXY_URL;
  if (proxy) await connectTo(proxy);
  return judgeEgress(egressPolicyOf(config), proxy?.host ?? null);
}

async function connectTo({ hostname, port, protocol }: URL): Promise<void> {
  const defaultPort = protocol === 'https:' ? 443 : 80;
  const host = hostname.replace(/^\[|\]$/g, '');
  const socket = connectSocket({ host, port: Number(port || defaultPort) });
  try {
    await withTimeout(once(socket, 'connect'), 5_000);
  } catch (error) {
    throw new Error(`The egress proxy cannot be reached: ${messageOf(error)}`, { cause: error });
  } finally {
    socket.destroy();
  }
}

export function judgeEgress(policy: EgressPolicy, proxyHost: string | null): Result {
  const open = [
    ...(policy.allowLoopback ? ['this machine'] : []),
    ...(policy.allowHttp ? ['plain http'] : []),
    ...(policy.allowCidrs.length > 0 ? [`${policy.allowCidrs.length} private ranges`] : []),
  ];
  const way = proxyHost === null ? 'directly' : `through ${proxyHost}`;
  if (open.length === 0) return ok(`Deliveries go to public addresses, ${way}`);
  const message = `Deliveries may also go to: ${open.join(', ')}; ${way}`;
  return policy.allowLoopback ? warn(`${message}. Loopback is for trials only`) : ok(message);
}
