import { randomBytes } from 'node:crypto';
import { SECURED } from './secured-logins.ts';

/** Settings that keep one test file apart from the others on the one stack. */
export type Namespace = Record<
  'KAFKA_BROKERS' | 'MONGODB_URL' | 'REDIS_URL' | 'TOPIC_PREFIX' | 'REDIS_PREFIX',
  string
>;

/**
 * Returns settings with topics and Redis keys of its own, and with a database that is new unless it is named. Throws
 * where no stack was given.
 */
export function createNamespace(
  env: NodeJS.ProcessEnv = process.env,
  database?: string,
): Namespace {
  const name = randomName();
  const url = new URL(required(env, 'MONGODB_URL'));
  url.pathname = `/${database ?? name}`;
  return {
    ...accessOf(env),
    KAFKA_BROKERS: required(env, 'KAFKA_BROKERS'),
    MONGODB_URL: url.href,
    REDIS_URL: required(env, 'REDIS_URL'),
    TOPIC_PREFIX: `${name}.`,
    REDIS_PREFIX: `${name}:`,
  };
}

/** A name for a database, topics or keys. */
export function randomName(): string {
  return `t${randomBytes(6).toString('hex')}`;
}

/** How the stores are reached, where they ask for more than an address. */
function accessOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const isAccess = (name: string): boolean =>
    name === SECURED || /^(KAFKA|MONGODB|REDIS)_(SSL|SASL|TLS)/.test(name);
  const found = Object.entries(env).filter(([name]) => isAccess(name));
  return Object.fromEntries(found.map(([name, value]) => [name, value ?? '']));
}

function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (value) return value;
  throw new Error(`${name} is not set: these tests need the stack that npm test brings up.`);
}
