import { randomBytes } from 'node:crypto';

/** Settings that keep one test file apart from the others on the one stack. */
export type Namespace = Record<
  'KAFKA_BROKERS' | 'MONGODB_URL' | 'REDIS_URL' | 'TOPIC_PREFIX' | 'REDIS_PREFIX',
  string
>;

/** Returns settings with a database, topics and Redis keys of its own. Throws where no stack was given. */
export function createNamespace(env: NodeJS.ProcessEnv = process.env): Namespace {
  const name = `t${randomBytes(6).toString('hex')}`;
  const url = new URL(required(env, 'MONGODB_URL'));
  url.pathname = `/${name}`;
  return {
    KAFKA_BROKERS: required(env, 'KAFKA_BROKERS'),
    MONGODB_URL: url.href,
    REDIS_URL: required(env, 'REDIS_URL'),
    TOPIC_PREFIX: `${name}.`,
    REDIS_PREFIX: `${name}:`,
  };
}

function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value) return value;
  throw new Error(`${name} is not set: these tests need the stack that npm test brings up.`);
}
