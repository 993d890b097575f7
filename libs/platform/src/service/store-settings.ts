import { z } from 'zod';
import { StartupError } from './errors.ts';

/*
 * A password that is not percent-encoded moves the end of the host: of `mongodb://u:12/34@db/posthorn` a reader finds
 * the host `u`, port 12. What then fails names the "host", which is a part of the password, so such a URL is refused
 * when settings are read, and the refusal shows nothing of it.
 */

const LOGIN = 'user and password percent-encoded (@ as %40, / as %2F, : as %3A, % as %25)';

/** One `@` at most, before the hosts; one segment of a path; no fragment. */
const MONGODB =
  /^mongodb(?:\+srv)?:\/\/(?:([^\s:@/?#[\]]*(?::[^\s:@/?#[\]]*)?)@)?([^\s@/?#]+)(?:\/[^\s@/?#]*)?(?:\?[^\s@#]*)?$/;
const MONGODB_HOST = /^(?:\[[\da-f:.]+\]|[^[\]:,]+)(?::\d{1,5})?$/i;

export const mongodbUrl = z
  .string()
  .refine(isMongodbUrl, `must be a mongodb:// or mongodb+srv:// URL, ${LOGIN}`);

function isMongodbUrl(text: string): boolean {
  const [, login = '', hosts] = MONGODB.exec(text) ?? [];
  if (hosts === undefined || !isDecodable(login)) return false;
  return hosts.split(',').every((host) => MONGODB_HOST.test(host));
}

/** Returns the hosts of a MongoDB URL for messages: nothing else of it. */
export function hostsOf(url: string): string {
  const hosts = isMongodbUrl(url) ? MONGODB.exec(url)?.[2] : undefined;
  return hosts ?? 'the address of MONGODB_URL';
}

export const redisUrl = z
  .string()
  .refine(isRedisUrl, `must be a redis:// or rediss:// URL, ${LOGIN}`);

/** As ioredis reads it, which also takes an `@` in the password: the last one ends it. */
function isRedisUrl(text: string): boolean {
  const url = /^rediss?:\/\/\S+$/.test(text) ? URL.parse(text) : null;
  if (!url || !isDecodable(url.username + url.password)) return false;
  return /^\/?\d*$/.test(url.pathname) && !url.search.includes('@') && url.hash === '';
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const hostAndPort = /^[^\s:,/@]+:\d{1,5}$/;

const addressList = z
  .string()
  .transform((text) => text.split(',').map((address) => address.trim()))
  .refine((addresses) => addresses.every((address) => hostAndPort.test(address)), {
    message: 'must be host:port, several separated by commas',
  });

const hostList = addressList.transform((addresses) =>
  addresses.map((address) => {
    const [host = '', port] = address.split(':');
    return { host, port: Number(port) };
  }),
);

export const flag = z
  .enum(['true', 'false'], 'must be true or false')
  .transform((text) => text === 'true');

const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] as const;

const saslMechanism = z
  .string()
  .transform((text) => text.toLowerCase())
  .pipe(z.enum(SASL_MECHANISMS, `must be one of ${SASL_MECHANISMS.join(', ')}`));

const path = z.string().optional();

/** How Kafka is reached. */
export const kafkaAccess = {
  KAFKA_BROKERS: addressList.describe(
    'Addresses of the Kafka brokers, host:port, separated by commas',
  ),
  KAFKA_SSL: flag.prefault('false').describe('Connect to Kafka with TLS'),
  KAFKA_SSL_CA_FILE: path.describe(
    'PEM file with the CA of the brokers; without it, the CAs that Node trusts',
  ),
  KAFKA_SSL_CERT_FILE: path.describe('PEM file with our certificate, where brokers ask for one'),
  KAFKA_SSL_KEY_FILE: path.describe('PEM file with the key of that certificate'),
  KAFKA_SASL_MECHANISM: saslMechanism
    .optional()
    .describe(`How to log in to Kafka: ${SASL_MECHANISMS.join(', ')}; without it, not at all`),
  KAFKA_SASL_USERNAME: z.string().optional().describe('User of PLAIN and SCRAM'),
  KAFKA_SASL_PASSWORD: z.string().optional().describe('Password of PLAIN and SCRAM'),
  KAFKA_SASL_TOKEN_FILE: path.describe(
    'File with the token of OAUTHBEARER, read for each connection',
  ),
};

/** How MongoDB is reached. */
export const mongodbAccess = {
  MONGODB_URL: mongodbUrl.describe(
    'MongoDB replica set and database, mongodb://…/posthorn; its options win over ours, but for the write concern',
  ),
  MONGODB_TLS_CA_FILE: path.describe('PEM file with the CA of MongoDB; connects with TLS'),
  MONGODB_TLS_CERT_FILE: path.describe('PEM file with our certificate for MongoDB'),
  MONGODB_TLS_KEY_FILE: path.describe('PEM file with the key of that certificate'),
};

/** How Redis is reached. */
export const redisAccess = {
  REDIS_URL: redisUrl.describe(
    'Redis, for cache invalidation, shared rate limits, open circuits and the waking of retry processes; deliveries continue without it; rediss:// connects with TLS',
  ),
  REDIS_TLS_CA_FILE: path.describe('PEM file with the CA of Redis, for rediss://'),
  REDIS_TLS_CERT_FILE: path.describe('PEM file with our certificate for Redis'),
  REDIS_TLS_KEY_FILE: path.describe('PEM file with the key of that certificate'),
  REDIS_SENTINELS: hostList
    .optional()
    .describe(
      'Addresses of Redis Sentinels, host:port, separated by commas; they name the server instead of REDIS_URL',
    ),
  REDIS_SENTINEL_NAME: z
    .string()
    .default('mymaster')
    .describe('Name under which the Sentinels watch the primary'),
  REDIS_SENTINEL_PASSWORD: z.string().optional().describe('Password of the Sentinels'),
  REDIS_CLUSTER_NODES: hostList
    .optional()
    .describe(
      'Addresses of some nodes of a Redis Cluster, host:port, separated by commas; they name the servers instead of REDIS_URL',
    ),
};

/** For each process that connects to a store. */
export const plaintextStores = {
  ALLOW_PLAINTEXT_STORES: flag
    .prefault('false')
    .describe('With NODE_ENV=production, stores may be reached without TLS'),
};

/** The settings that decide whether a store is reached with TLS. A process has those of its stores. */
interface StoreConfig {
  ALLOW_PLAINTEXT_STORES?: boolean;
  KAFKA_BROKERS?: readonly string[];
  KAFKA_SSL?: boolean;
  MONGODB_URL?: string;
  MONGODB_TLS_CA_FILE?: string | undefined;
  MONGODB_TLS_CERT_FILE?: string | undefined;
  MONGODB_TLS_KEY_FILE?: string | undefined;
  REDIS_URL?: string;
}

/**
 * Throws StartupError in production when a store would be reached without TLS: payloads, and what may
 * be sent to whom, would cross the network readable and changeable.
 */
export function assertNoPlaintextStores(config: StoreConfig, env: NodeJS.ProcessEnv): void {
  if (env.NODE_ENV !== 'production' || config.ALLOW_PLAINTEXT_STORES) return;
  const plaintext = plaintextStoresOf(config);
  if (plaintext.length === 0) return;
  throw new StartupError(
    [
      'Posthorn cannot start: NODE_ENV is production, and stores would be reached without TLS:',
      ...plaintext.map((how) => `  ${how}`),
      'Set ALLOW_PLAINTEXT_STORES=true where the network between them is trusted. docs/security.md says more.',
    ].join('\n'),
  );
}

/** How each store without TLS can be given it. */
function plaintextStoresOf(config: StoreConfig): string[] {
  const { KAFKA_BROKERS, KAFKA_SSL, REDIS_URL } = config;
  const found: string[] = [];
  if (KAFKA_BROKERS && !KAFKA_SSL) found.push('Kafka: set KAFKA_SSL=true');
  const mongodb = plaintextMongodb(config);
  if (mongodb !== null) found.push(`MongoDB: ${mongodb}`);
  if (REDIS_URL?.startsWith('redis:')) found.push('Redis: begin REDIS_URL with rediss://');
  return found;
}

/** Null when there is TLS, and its certificates are checked. */
function plaintextMongodb({
  MONGODB_URL: url,
  MONGODB_TLS_CA_FILE,
  MONGODB_TLS_CERT_FILE,
  MONGODB_TLS_KEY_FILE,
}: StoreConfig): string | null {
  if (url === undefined) return null;
  const options = mongodbOptionsOf(url);
  const insecure = UNCHECKED.find((name) => options.get(name) === 'true');
  if (insecure !== undefined) return `remove ${insecure} from MONGODB_URL`;
  if (MONGODB_TLS_CA_FILE ?? MONGODB_TLS_CERT_FILE ?? MONGODB_TLS_KEY_FILE) return null;
  // `mongodb+srv` has TLS unless the URL says otherwise.
  const tls = options.get('tls') ?? options.get('ssl');
  const isTls = tls === undefined ? url.startsWith('mongodb+srv:') : tls === 'true';
  return isTls ? null : 'end MONGODB_URL with tls=true, or set MONGODB_TLS_CA_FILE';
}

/** With these the certificate of the server may be anybody's. */
const UNCHECKED = ['tlsinsecure', 'tlsallowinvalidcertificates', 'tlsallowinvalidhostnames'];

/** The names of options may be written in any case; these are in lower case. */
function mongodbOptionsOf(url: string): Map<string, string> {
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
  const options = [...new URLSearchParams(query)];
  return new Map(options.map(([name, value]) => [name.toLowerCase(), value]));
}
