import { Cluster, Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import standalone from 'ioredis/built/connectors/StandaloneConnector.js';
import type { SecureContext } from 'node:tls';
import type { z } from 'zod';
import { StartupError } from '../service/errors.ts';
import type { Logger } from '../service/logger.ts';
import { followTlsFiles } from '../service/secure-context.ts';
import type { redisAccess } from '../service/store-settings.ts';

/** A cluster has its keys on several nodes: commands on more than one key go through `sendAll` and its like (commands.ts). */
export type RedisClient = Redis | Cluster;

type Access = Pick<RedisAccess, 'url'> & Partial<RedisAccess>;

/**
 * ioredis listens for one error of a socket. A server that is refused because of its certificate may still send an alert,
 * which is a second one and ended the process (https://github.com/redis/ioredis/pull/961).
 */
for (const { prototype } of [standalone.default, SentinelConnector]) {
  // oxlint-disable-next-line typescript/unbound-method -- It gets its connector below.
  const { connect } = prototype;
  prototype.connect = async function (...report) {
    const stream = await connect.apply(this, report);
    return stream.on('error', () => undefined);
  };
}

const TIMEOUTS = {
  connectTimeout: 3_000,
  commandTimeout: 1_000,
  // A command that timed out stays in memory until its reply comes: without this, a Redis that hangs would fill it.
  socketTimeout: 5_000,
};
const retryStrategy = (tryNumber: number): number => Math.min(tryNumber * 100, 2_000);

/**
 * Returns a connection on which no caller waits for Redis: commands fail at once while it is away. It
 * reconnects by itself, and logs one warning for each outage.
 */
export function connectRedis(access: Access, logger: Logger): RedisClient {
  return access.clusterNodes ? connectCluster(access, logger) : connectServer(access, logger);
}

/**
 * Calls `act` at each connection, at once when there is one already: what is opened later in a start would otherwise
 * wait for the next outage.
 */
export function onEachConnection(redis: RedisClient, act: () => void): void {
  redis.on('ready', act);
  if (redis.status === 'ready') act();
}

function connectServer({ url, tls = null, sentinels = null }: Access, logger: Logger): Redis {
  const redis = new Redis(url, {
    ...(tls && { tls: { secureContext: tls } }),
    ...(sentinels && toOptions(sentinels, url, tls)),
    ...TIMEOUTS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 1,
    retryStrategy,
  });
  let isReported = false;
  redis.on('error', (error: Error) => {
    if (isReported) return;
    isReported = true;
    logger.warn({ error: error.message }, 'Redis is unavailable, continuing without it');
  });
  redis.on('ready', () => {
    isReported = false;
  });
  return redis;
}

/** Sentinels are reached with TLS when the servers are. */
function toOptions(
  { addresses, name, password }: Sentinels,
  url: string,
  tls: SecureContext | null,
): RedisOptions {
  return {
    sentinels: addresses,
    // One that hangs must not keep the next one from being asked.
    sentinelCommandTimeout: 1_000,
    name,
    ...(password !== undefined && { sentinelPassword: password }),
    ...(url.startsWith('rediss:') && {
      enableTLSForSentinelMode: true,
      sentinelTLS: tls ? { secureContext: tls } : {},
    }),
  };
}

export type RedisAccessConfig = z.infer<z.ZodObject<typeof redisAccess>>;

interface Address {
  host: string;
  port: number;
}

interface Sentinels {
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

/** Reads the database as ioredis does: the path, or else the option `db`. */
function databaseOf(text: string): string {
  const { pathname, searchParams } = new URL(text);
  return pathname.slice(1) || (searchParams.get('db') ?? '0');
}

/** While one of its nodes is away, only commands on the keys of that node fail. */
function connectCluster({ url, tls, clusterNodes }: Access, logger: Logger): Cluster {
  const { username, password } = new URL(url);
  const cluster = new ImpatientCluster(clusterNodes ?? [], {
    clusterRetryStrategy: retryStrategy,
    // Commands fail at once while a node is away: no caller waits for it to come back, or for a failover.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // Finds new nodes also where no command asks for them: a subscriber sends none.
    slotsRefreshInterval: 10_000,
    // A node keeps its name until its connection is opened: TLS checks the certificate against the name.
    dnsLookup: (host, found) => {
      found(null, host);
    },
    redisOptions: {
      ...(username && { username: decodeURIComponent(username) }),
      ...(password && { password: decodeURIComponent(password) }),
      ...(url.startsWith('rediss:') && { tls: tls ? { secureContext: tls } : {} }),
      ...TIMEOUTS,
      // Connects to every node at once: the client notices only on a connection that a node is lost. Without one, a
      // subscriber tried lost nodes without a pause.
      lazyConnect: false,
    },
  });
  logOutages(cluster, logger);
  return cluster;
}

/**
 * Refuses commands while no node is known, which would be kept without a limit. A command to a node that is being
 * connected waits for that, and for no longer than the command timeout.
 */
class ImpatientCluster extends Cluster {
  override sendCommand(...[command, ...rest]: Parameters<Cluster['sendCommand']>): unknown {
    // The client itself sends `cluster` commands, to find the nodes.
    const isAllowed = this.status === 'ready' || command.name === 'cluster';
    if (isAllowed) return super.sendCommand(command, ...rest);
    command.reject(new Error('No node of the Redis Cluster is available'));
    return command.promise;
  }
}

/** One warning for each outage of all, and for each node that is lost, until it is connected again. */
function logOutages(cluster: Cluster, logger: Logger): void {
  let isReported = false;
  cluster.on('reconnecting', () => {
    if (!isReported) logger.warn('Redis is unavailable, continuing without it');
    isReported = true;
  });
  cluster.on('ready', () => {
    isReported = false;
  });
  // No node is left, which was reported. Without a listener, ioredis would print it.
  cluster.on('error', () => undefined);
  const reported = new Set<string>();
  cluster.on('node error', (error: Error, node: string) => {
    if (reported.has(node)) return;
    reported.add(node);
    const text = 'A node of the Redis Cluster is unavailable, continuing without it';
    logger.warn({ error: error.message, node }, text);
  });
  cluster.on('+node', (redis: Redis) => {
    const { host = '', port = 0 } = redis.options;
    redis.on('ready', () => reported.delete(`${host}:${port}`));
  });
}
