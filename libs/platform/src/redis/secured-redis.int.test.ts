import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { selfSigned } from '../../../../test/support/receivers/self-signed.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { redisServer } from '../../../../tools/local-stack/machine/required-programs.ts';
import { createLogger } from '../service/logger.ts';
import { redisAccess } from '../service/store-settings.ts';
import { connectRedis, redisAccessOf, type RedisClient } from './connect.ts';

const PASSWORD = 'hush-redis';
const NAME = 'posthorn-redis';
const logger = createLogger('test', 'silent');

let dir: string;
let caFile: string;
let tlsArgs: string[];
let running: ChildProcess[] = [];
let connections: RedisClient[] = [];

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'posthorn-secured-redis-'));
  const { key, cert } = selfSigned('localhost');
  const write = (name: string, text: string): string => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };
  caFile = write('ca.pem', cert);
  const [certArgs, keyArgs] = [
    ['--tls-cert-file', caFile],
    ['--tls-key-file', write('key.pem', key)],
  ];
  const peers = ['--tls-ca-cert-file', caFile, '--tls-auth-clients', 'no'];
  tlsArgs = [...certArgs, ...keyArgs, ...peers, '--tls-replication', 'yes', '--port', '0'];
});

afterEach(async () => {
  for (const redis of connections) redis.disconnect();
  await Promise.all(running.map(stop));
  [running, connections] = [[], []];
});

afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

function start(name: string, args: string[]): ChildProcess {
  const cwd = join(dir, name);
  mkdirSync(cwd, { recursive: true });
  const child = spawn(redisServer() ?? 'redis-server', args, { cwd, stdio: 'ignore' });
  running.push(child);
  return child;
}

function startServer(port: number, more: string[] = []): ChildProcess {
  const login = ['--requirepass', PASSWORD, '--masterauth', PASSWORD];
  const plain = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const listen = ['--tls-port', String(port)];
  return start(`server-${port}`, [...tlsArgs, ...listen, ...plain, ...login, ...more]);
}

function startSentinel(port: number, primaryPort: number): void {
  const lines = [
    `sentinel resolve-hostnames yes`,
    `sentinel announce-hostnames yes`,
    `sentinel monitor ${NAME} localhost ${primaryPort} 2`,
    `sentinel auth-pass ${NAME} ${PASSWORD}`,
    `sentinel down-after-milliseconds ${NAME} 1000`,
    `sentinel failover-timeout ${NAME} 5000`,
  ];
  const path = join(dir, `sentinel-${port}.conf`);
  writeFileSync(path, lines.join('\n'));
  const listen = ['--tls-port', String(port), '--bind', '127.0.0.1'];
  start(`sentinel-${port}`, [path, '--sentinel', ...tlsArgs, ...listen]);
}

function connectWith(settings: Record<string, string>): RedisClient {
  const redis = connectRedis(redisAccessOf(z.object(redisAccess).parse(settings)), logger);
  connections.push(redis);
  return redis;
}

const answers = (redis: RedisClient) => () =>
  redis.ping().then(
    () => true,
    () => false,
  );

/** True when the Sentinel knows the replica and both others, so that it can agree to a failover. */
async function knowsAll(sentinel: RedisClient): Promise<boolean> {
  const replicas = (await sentinel.call('SENTINEL', 'REPLICAS', NAME)) as unknown[];
  const others = (await sentinel.call('SENTINEL', 'SENTINELS', NAME)) as unknown[];
  return replicas.length === 1 && others.length === 2;
}

describe('Redis', () => {
  test('is reached with TLS and a password, and only by its own CA', async () => {
    const [port = 0] = await freePorts(1);
    startServer(port);
    const url = `rediss://:${PASSWORD}@localhost:${port}`;
    const trusting = connectWith({ REDIS_URL: url, REDIS_TLS_CA_FILE: caFile });
    await eventually('a reply', answers(trusting));
    const untrusting = connectWith({ REDIS_URL: url });
    await eventually('a refusal', () => untrusting.status === 'reconnecting');
    expect(await answers(untrusting)()).toBe(false);
  });

  test('is found again through its Sentinels after its primary has died', async () => {
    const [first = 0, second = 0, ...sentinels] = await freePorts(5);
    const primary = startServer(first, ['--replica-announce-ip', 'localhost']);
    const replica = ['--replicaof', `localhost ${first}`, '--replica-announce-ip', 'localhost'];
    startServer(second, replica);
    for (const port of sentinels) startSentinel(port, first);
    const redis = connectWith({
      REDIS_URL: `rediss://:${PASSWORD}@unused`,
      REDIS_TLS_CA_FILE: caFile,
      REDIS_SENTINELS: sentinels.map((port) => `localhost:${port}`).join(),
      REDIS_SENTINEL_NAME: NAME,
    });
    await eventually('a reply', answers(redis));
    for (const port of sentinels) {
      const sentinel = connectWith({
        REDIS_URL: `rediss://localhost:${port}`,
        REDIS_TLS_CA_FILE: caFile,
      });
      await eventually(
        'what a Sentinel knows',
        () => knowsAll(sentinel).catch(() => false),
        60_000,
      );
    }
    await stop(primary);
    const isPrimary = async (): Promise<boolean> => {
      const info = await redis.info('server');
      return info.includes(`tcp_port:${second}`);
    };
    await eventually('the other server', () => isPrimary().catch(() => false), 60_000);
    // Sentinels close the connections to a server when they have made it the primary.
    const write = () => redis.set('after', 'failover').catch(() => null);
    await eventually('a write', async () => (await write()) === 'OK');
  }, 120_000);
});
