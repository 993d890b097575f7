import { Cluster, type Command, type Redis, type RedisOptions } from 'ioredis';
import type { SecureContext } from 'node:tls';
import type { Logger } from '../service/logger.ts';

interface ClusterAccess {
  /** Its scheme, user and password are used for every node. */
  url: string;
  tls: SecureContext | null;
  /** The first nodes to connect to. They name all other nodes of the cluster. */
  nodes: { host: string; port: number }[];
  timeouts: Pick<RedisOptions, 'connectTimeout' | 'commandTimeout' | 'socketTimeout'>;
  /** Returns how long to wait before this try, in milliseconds. */
  retryStrategy: (tryNumber: number) => number;
}

/** As `connectRedis`, for a cluster. While one of its nodes is away, only commands on the keys of that node fail. */
export function connectCluster(
  { url, tls, nodes, timeouts, retryStrategy }: ClusterAccess,
  logger: Logger,
): Cluster {
  const cluster = new ImpatientCluster(nodes, {
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
      ...loginOf(url),
      ...(url.startsWith('rediss:') && { tls: tls ? { secureContext: tls } : {} }),
      ...timeouts,
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
    if (this.status === 'ready' || isOfCluster(command)) return super.sendCommand(command, ...rest);
    command.reject(new Error('No node of the Redis Cluster is available'));
    return command.promise;
  }
}

/** The client sends these commands itself, to find the nodes. */
function isOfCluster({ name }: Command): boolean {
  return name === 'cluster';
}

function loginOf(url: string): Pick<RedisOptions, 'username' | 'password'> {
  const { username, password } = new URL(url);
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
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
  logLostNodes(cluster, logger);
  // No node is left, which was reported. Without a listener, ioredis would print it.
  cluster.on('error', () => undefined);
}

function logLostNodes(cluster: Cluster, logger: Logger): void {
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
