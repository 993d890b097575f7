import type { SecureContext } from 'node:tls';
import type { z } from 'zod';
import type { redisAccess } from '../service/stores/store-settings.ts';
import { StartupError } from '../service/errors.ts';
import { followTlsFiles } from '../tls/secure-context.ts';

export type RedisAccessConfig = z.infer<z.ZodObject<typeof redisAccess>>;

interface Address {
  host: string;
  port: number;
}

export interface Sentinels {
  addresses: Address[];
  /** The name under which they watch the primary. */
  name: string;
  password: string | undefined;
}

/** How Redis is reached. */
export interface RedisAccess {
  /** With sentinels, only its scheme, user, password and database are used; with a cluster, not the database either. */
  url: string;
  /** Null without TLS files. The scheme of the URL decides whether there is TLS. */
  tls: SecureContext | null;
  /** Null when the URL or a cluster names the servers. */
  sentinels: Sentinels | null;
  /** Some nodes of a Redis Cluster, which name all others; null without one. */
  clusterNodes: Address[] | null;
}

/** Throws StartupError when settings contradict each other, or name unusable files. */
export function redisAccessOf(config: RedisAccessConfig): RedisAccess {
  return {
    url: config.REDIS_URL,
    tls: tlsOf(config),
    sentinels: sentinelsOf(config),
    clusterNodes: clusterNodesOf(config),
  };
}

function tlsOf({
  REDIS_URL: url,
  REDIS_TLS_CA_FILE: ca,
  REDIS_TLS_CERT_FILE: cert,
  REDIS_TLS_KEY_FILE: key,
}: RedisAccessConfig): SecureContext | null {
  if (ca === undefined && cert === undefined && key === undefined) return null;
  if (url.startsWith('rediss:')) {
    return followTlsFiles('Redis (REDIS_TLS_*_FILE)', { ca, cert, key });
  }
  throw new StartupError(
    'REDIS_TLS_*_FILE is set and REDIS_URL has no TLS: begin it with rediss://.',
  );
}

function sentinelsOf({
  REDIS_SENTINELS: addresses,
  REDIS_SENTINEL_NAME: name,
  REDIS_SENTINEL_PASSWORD: password,
}: RedisAccessConfig): Sentinels | null {
  return addresses === undefined ? null : { addresses, name, password };
}

function clusterNodesOf({
  REDIS_CLUSTER_NODES: nodes,
  REDIS_SENTINELS: sentinels,
  REDIS_URL: url,
}: RedisAccessConfig): Address[] | null {
  if (nodes === undefined) return null;
  if (sentinels !== undefined) {
    throw new StartupError(
      'REDIS_CLUSTER_NODES and REDIS_SENTINELS are both set: a cluster has no Sentinels. Remove one of them.',
    );
  }
  if (databaseOf(url) !== '0') {
    throw new StartupError(
      `REDIS_CLUSTER_NODES is set and REDIS_URL has database ${databaseOf(url)}: a cluster has database 0 only. Remove it from REDIS_URL.`,
    );
  }
  return nodes;
}

/** As ioredis reads it: the path, or else the option `db`. */
function databaseOf(text: string): string {
  const { pathname, searchParams } = new URL(text);
  return pathname.slice(1) || (searchParams.get('db') ?? '0');
}
