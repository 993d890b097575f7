import { execFileSync, type StdioOptions } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import mongoose from 'mongoose';
import type { Addresses } from '../settings.ts';

const KAFKA_POM = join(import.meta.dirname, '../stores/kafka-pom.xml');

const GIT = {
  cwd: import.meta.dirname,
  stdio: ['ignore', 'pipe', 'ignore'] satisfies StdioOptions,
};

/** The machine of a measurement. Contains no name of a host, user or folder. */
export interface Host {
  cpu: string;
  cores: number;
  memoryGiB: number;
  system: string;
  node: string;
  kafka: string;
  /** The commit of the source; with "+" when there were uncommitted changes. */
  commit: string;
}

/** The machine, and the stores that run on it. */
export interface Machine extends Host {
  mongodb: string;
  redis: string;
}

export async function describeMachine(addresses: Addresses): Promise<Machine> {
  const [mongodb, redis] = await Promise.all([
    mongodbVersion(addresses.mongodbUrl),
    redisVersion(addresses.redisUrl),
  ]);
  return { ...describeHost(), mongodb, redis };
}

export function describeHost(): Host {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    kafka: kafkaVersion(),
    commit: commit(),
  };
}

/** The broker does not report its version. The pom lists the jars that it was started from. */
function kafkaVersion(): string {
  const pom = readFileSync(KAFKA_POM, 'utf8');
  return /<artifactId>kafka_[^<]*<\/artifactId>\s*<version>([^<]+)/.exec(pom)?.[1] ?? 'unknown';
}

async function mongodbVersion(url: string): Promise<string> {
  const client = new mongoose.mongo.MongoClient(url);
  try {
    const { version, buildEnvironment } = await client.db().admin().serverInfo();
    const builtFor = (buildEnvironment as { target_os?: string } | undefined)?.target_os;
    return `${String(version)} (built for ${builtFor ?? 'an unknown system'})`;
  } finally {
    await client.close();
  }
}

async function redisVersion(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    return /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
  } finally {
    redis.disconnect();
  }
}

function commit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { ...GIT, encoding: 'utf8' }).trim();
    const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
    return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`;
  } catch {
    return 'unknown';
  }
}
