/** The processes that use Redis, each with a user of its own. */
export const REDIS_USERS = ['gateway', 'dispatcher', 'retry'] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

interface Rights {
  /** Keys, behind REDIS_PREFIX. */
  reads: readonly string[];
  writes: readonly string[];
  /** To subscribe or to publish, whichever of the commands it has. Behind REDIS_PREFIX. */
  channels: readonly string[];
  /** Channels that it only publishes to. Behind REDIS_PREFIX. */
  publishes?: readonly string[];
  commands: readonly string[];
}

/** The rights of each process in Redis; it has no others (docs/security.md). */
export const RIGHTS: Record<RedisUser, Rights> = {
  gateway: {
    // prettier-ignore
    reads: [
      'rate:*', 'circuits-of-company:*', 'endpoint-flow:*', 'reading-positions', 'ingest-reports:*',
    ],
    writes: ['rate:*', 'live-watched', 'ingest-reports:*'],
    channels: ['invalidations', 'live-attempts'],
    publishes: ['work'],
    // prettier-ignore
    commands: [
      'get', 'mget', 'set', 'incrby', 'pexpire', 'hget', 'hmget', 'hscan', 'subscribe', 'publish', 'zadd',
      'zremrangebyscore',
    ],
  },
  dispatcher: {
    // prettier-ignore
    reads: [
      'running:*', 'circuits-of-partition:*', 'pauses-of-partition:*', 'endpoint-flow:*', 'live-watched',
    ],
    // prettier-ignore
    writes: [
      'running:*', 'circuits-of-partition:*', 'circuits-of-company:*', 'pauses-of-partition:*',
      'endpoint-flow:*', 'reading-positions',
    ],
    channels: ['invalidations'],
    publishes: ['live-attempts'],
    // prettier-ignore
    commands: [
      'mget', 'set', 'del', 'hgetall', 'hset', 'hdel', 'pexpire', 'subscribe', 'zrangebyscore', 'zadd',
      'zremrangebyscore',
    ],
  },
  retry: {
    reads: ['circuits-of-company:*'],
    writes: [],
    channels: ['work'],
    publishes: ['invalidations', 'work'],
    commands: ['hget', 'subscribe'],
  },
};

/** With it, the client checks that the server has loaded its data. */
const TO_CONNECT = ['info'];
/** The client finds nodes, names its connections, announces to replicas that it only reads, and follows keys that move. */
const TO_FOLLOW_A_CLUSTER = [
  'cluster|slots',
  'cluster|info',
  'client|setname',
  'readonly',
  'asking',
];
/** In place of MGET, see across-slots.ts. */
const ON_SINGLE_KEYS = ['get'];

/** Where a user is needed. */
export interface RedisScope {
  /** REDIS_PREFIX; as a pattern, of several Posthorns of a test server. */
  prefix: string;
  isCluster: boolean;
}

export const redisUserOf = (user: RedisUser): string => `posthorn-${user}`;

/**
 * Returns the rules of an ACL (Redis 7.0) for a process: nothing is allowed but what they list. There is no password in
 * them.
 */
export function aclRulesOf(user: RedisUser, { prefix, isCluster }: RedisScope): string[] {
  const { reads, writes, channels, publishes = [], commands } = RIGHTS[user];
  const inACluster = isCluster ? [...TO_FOLLOW_A_CLUSTER, ...ON_SINGLE_KEYS] : [];
  const allowed = new Set([commands, TO_CONNECT, inACluster].flat());
  return [
    'reset',
    'on',
    ...reads.map((key) => `%R~${prefix}${key}`),
    ...writes.map((key) => `%W~${prefix}${key}`),
    ...channels.map((channel) => `&${prefix}${channel}`),
    ...Array.from(allowed, (command) => `+${command}`),
    // A selector: what is in it counts for these channels alone.
    ...publishes.map((channel) => `(+publish &${prefix}${channel})`),
  ];
}

/** Returns a line for redis.conf or an ACL file for each process, to which a password is to be added. */
export function usersFile(scope: RedisScope): string {
  const lines = REDIS_USERS.map((user) =>
    ['user', redisUserOf(user), ...aclRulesOf(user, scope)].join(' '),
  );
  return `${lines.join('\n')}\n`;
}
