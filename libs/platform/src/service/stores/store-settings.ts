import { z } from 'zod';
import { mongodbUrl, redisUrl } from './store-urls.ts';

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

export const SASL_MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'] as const;

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
    'Redis, for cache invalidation and shared rate limits; deliveries continue without it; rediss:// connects with TLS',
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
