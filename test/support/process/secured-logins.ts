import { REDIS_USERS, redisUserOf } from '../../../deploy/setup/redis-rights.ts';

/** The user of the tests themselves, who stands for nobody in production and may do everything. */
export const TESTS = 'tests';
/** Of every user of MongoDB. */
export const MONGODB_PASSWORD = 'hush-mongodb';
/** Of every user of Kafka. */
export const KAFKA_PASSWORD = 'hush-kafka';
/** The user of the services. */
export const KAFKA_USER = 'posthorn';
/** The user of create-topics. */
export const KAFKA_SETUP_USER = 'posthorn-setup';

/** Of every user of Redis. */
export const REDIS_PASSWORD = 'hush-redis';

/** Is set where all stores ask for a login. */
export const SECURED = 'POSTHORN_SECURED_STACK';

export type Process = 'gateway' | 'dispatcher' | 'retry' | 'ingest' | 'admin' | 'setup';

/**
 * Returns the settings of a process: on secured stores with the users that it has in production, elsewhere
 * as they are. The CA of MongoDB is in its URL for the tests, and in our own setting for processes.
 */
export function loginOf(
  process: Process,
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  if (env[SECURED] === undefined) return { ...env };
  // It accepts messages as a gateway does.
  if (process === 'ingest') return loginOf('gateway', env);
  const { REDIS_URL: redisUrl, ...others } = env;
  const url = new URL(env.MONGODB_URL ?? '');
  const caFile = url.searchParams.get('tlsCAFile');
  url.username = process;
  url.searchParams.delete('tls');
  url.searchParams.delete('tlsCAFile');
  return {
    ...others,
    ...redisLoginOf(process, redisUrl),
    MONGODB_URL: url.href,
    ...(caFile !== null && { MONGODB_TLS_CA_FILE: caFile }),
    KAFKA_SASL_USERNAME: process === 'setup' ? KAFKA_SETUP_USER : KAFKA_USER,
  };
}

/** Nothing for a process that has no use for Redis. */
function redisLoginOf(process: Process, text: string | undefined): Record<string, string> {
  const user = REDIS_USERS.find((each) => each === process);
  if (user === undefined || text === undefined) return {};
  const url = new URL(text);
  url.username = redisUserOf(user);
  return { REDIS_URL: url.href };
}
