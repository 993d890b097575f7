import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { redisServer } from '../../../tools/local-stack/machine/required-programs.ts';
import type { Children } from '../../../tools/local-stack/processes/children.ts';
import { selfSigned } from '../receivers/self-signed.ts';
import { eventually } from '../time/eventually.ts';
import { userArgs } from './secured-redis.ts';

export const CLUSTER_PASSWORD = 'hush-cluster';
/**
 * After this the others take a node for lost, and a replica takes over from it. Nodes that get no time of the processor
 * for a while must not lose each other.
 */
const NODE_TIMEOUT_MS = 15_000;

export interface ClusterNode {
  port: number;
  /** The port on which nodes talk to each other. */
  busPort: number;
  /** A connection to this node alone. */
  redis: Redis;
  id: string;
  /** Ends it as a crash would. */
  kill: () => Promise<void>;
}

export interface ClusterTls {
  certFile: string;
  keyFile: string;
}

/** Writes a certificate for `localhost`, which is its own CA. */
export function writeClusterTls(dir: string): ClusterTls {
  const { key, cert } = selfSigned('localhost');
  const files = { certFile: join(dir, 'cluster-ca.pem'), keyFile: join(dir, 'cluster-key.pem') };
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key);
  return files;
}

/**
 * Starts a node without slots that listens with TLS only and asks for a login, with one user for each process that uses
 * it.
 */
export async function startClusterNode(
  dir: string,
  tls: ClusterTls,
  children: Children,
): Promise<ClusterNode> {
  const [port = 0, busPort = 0] = await freePorts(2);
  const cwd = join(dir, String(port));
  mkdirSync(cwd);
  const child = children.start({
    name: `redis-${port}`,
    command: redisServer() ?? 'redis-server',
    args: argsOf(port, busPort, tls),
    cwd,
    port,
    logPath: join(dir, `redis-${port}.log`),
    stopTimeoutMs: 5_000,
  });
  const redis = new Redis(`rediss://:${CLUSTER_PASSWORD}@localhost:${port}`, {
    tls: { checkServerIdentity: () => undefined, rejectUnauthorized: false },
    retryStrategy: () => 50,
  });
  redis.on('error', () => undefined);
  const id = await eventually('the id of a node', () => idOf(redis));
  const kill = async (): Promise<void> => {
    redis.disconnect();
    await child.kill();
  };
  return { port, busPort, redis, id, kill };
}

function idOf(redis: Redis): Promise<string | null> {
  return redis.cluster('MYID').then(String, () => null);
}

function argsOf(port: number, busPort: number, { certFile, keyFile }: ClusterTls): string[] {
  const listen = ['--port', '0', '--tls-port', String(port), '--bind', '127.0.0.1'];
  const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile];
  const peers = ['--tls-ca-cert-file', certFile, '--tls-auth-clients', 'no'];
  const between = ['--tls-replication', 'yes', '--tls-cluster', 'yes'];
  const login = ['--requirepass', CLUSTER_PASSWORD, '--masterauth', CLUSTER_PASSWORD];
  const node = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)];
  // Nodes tell clients a name, which is what their certificate is for.
  const name = ['--cluster-announce-hostname', 'localhost'];
  const naming = ['--cluster-preferred-endpoint-type', 'hostname'];
  const lost = ['--cluster-node-timeout', String(NODE_TIMEOUT_MS)];
  const partial = ['--cluster-require-full-coverage', 'no'];
  const memory = ['--save', '', '--appendonly', 'no', '--repl-diskless-sync-delay', '0'];
  const users = userArgs(true, CLUSTER_PASSWORD);
  return [
    ...[listen, files, peers, between, login, users],
    ...[node, name, naming, lost, partial, memory],
  ].flat();
}
