import { join } from 'node:path';
import type { Children } from '../../../tools/local-stack/processes/children.ts';
import type { Log } from '../../../tools/local-stack/waiting.ts';
import {
  KAFKA_PASSWORD,
  KAFKA_SETUP_USER,
  KAFKA_USER,
  SECURED,
  TESTS,
} from '../process/secured-logins.ts';
import { servicesMay, setupMay, startSecuredKafka } from './secured-kafka.ts';
import { startSecuredMongodb } from './secured-mongodb.ts';
import { refusedBy, startSecuredRedis, type SecuredRedis } from './secured-redis.ts';
import { openTestedRedis, serversOf } from './tested-redis.ts';

/** Every namespace of a test begins with it. */
const PREFIX = 't';

export interface SecuredStack {
  /** The settings of a process with the rights of the tests; `loginOf` gives a process its own. */
  env: Record<string, string>;
  /** MongoDB past its listener with TLS. */
  plaintextMongodbUrl: string;
  /** Throws when Redis has refused something to a process, see redis-users.ts. */
  verify: () => Promise<void>;
  /** Stops what `children` does not know. */
  stop: () => Promise<void>;
}

/**
 * Starts stores that are all reached with TLS and a login: Kafka with SCRAM and ACLs, MongoDB with a user for
 * each process, Redis with one for each that uses it. Services on it run as in production.
 */
export async function startSecuredStack(
  dir: string,
  children: Children,
  log: Log,
): Promise<SecuredStack> {
  const [kafka, mongodb, redis] = await Promise.all([
    startSecuredKafka(),
    startSecuredMongodb({ dir: join(dir, 'mongodb'), children, log }),
    startSecuredRedis(join(dir, 'redis'), children),
  ]);
  await kafka.allow(`User:${KAFKA_USER}`, servicesMay(PREFIX));
  await kafka.allow(`User:${KAFKA_SETUP_USER}`, setupMay(PREFIX));
  return {
    env: {
      [SECURED]: 'true',
      NODE_ENV: 'production',
      KAFKA_BROKERS: kafka.secured,
      KAFKA_SSL: 'true',
      KAFKA_SSL_CA_FILE: kafka.caFile,
      KAFKA_SASL_MECHANISM: 'scram-sha-512',
      KAFKA_SASL_USERNAME: TESTS,
      KAFKA_SASL_PASSWORD: KAFKA_PASSWORD,
      MONGODB_URL: mongodb.url,
      REDIS_URL: redis.url,
      REDIS_TLS_CA_FILE: redis.caFile,
    },
    plaintextMongodbUrl: mongodb.plaintextUrl,
    verify: () => verifyRedis(redis),
    async stop() {
      await Promise.all([kafka.stop(), mongodb.close()]);
    },
  };
}

async function verifyRedis({ url, caFile }: SecuredRedis): Promise<void> {
  const env = { REDIS_URL: url, REDIS_TLS_CA_FILE: caFile };
  const tested = await openTestedRedis(env, () => Promise.resolve());
  try {
    const refused = await refusedBy(serversOf(tested.redis));
    if (refused.length > 0) throw new Error(`Redis has refused:\n${refused.join('\n')}`);
  } finally {
    await tested.stop();
  }
}
