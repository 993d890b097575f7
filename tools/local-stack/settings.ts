import { resolve } from 'node:path';
import { StackError } from './stack-error.ts';

export interface BackingPorts {
  kafka: number;
  kafkaController: number;
  mongodb: number;
  redis: number;
}

/** undefined: Docker if it can be used, else processes on this machine. */
export type StackMode = 'docker' | 'native' | undefined;

export interface Addresses {
  kafkaBrokers: string;
  mongodbUrl: string;
  redisUrl: string;
}

export interface Settings {
  stackDir: string;
  mode: StackMode;
  given: Partial<Addresses>;
  backingPorts: BackingPorts;
  host: string;
  gatewayPort: number;
  opsPort: number;
  /** Of the issuer of `npm start -- --people`. */
  issuerPort: number;
}

type Env = NodeJS.ProcessEnv;

/** The default ports are fixed: the stored configuration of the replica set contains one, and so may a user's notes. */
export function readSettings(env: Env): Settings {
  return {
    stackDir: readStackDir(env),
    mode: readMode(env),
    given: readGivenAddresses(env),
    backingPorts: {
      kafka: readPort(env, 'KAFKA_PORT', 19_092),
      kafkaController: readPort(env, 'KAFKA_CONTROLLER_PORT', 19_093),
      mongodb: readPort(env, 'MONGODB_PORT', 27_117),
      redis: readPort(env, 'REDIS_PORT', 16_379),
    },
    host: setOr(env, 'HOST', '127.0.0.1'),
    gatewayPort: readPort(env, 'PORT', 8_080),
    opsPort: readPort(env, 'OPS_PORT', 9_101),
    issuerPort: readPort(env, 'ISSUER_PORT', 9_180),
  };
}

export function readStackDir(env: Env): string {
  return resolve(import.meta.dirname, '../..', setOr(env, 'STACK_DIR', '.local'));
}

export function readMode(env: Env): StackMode {
  const value = setOr(env, 'STACK', '');
  if (value === 'docker' || value === 'native') return value;
  if (value === '') return undefined;
  throw new StackError(
    `STACK must be "docker", "native" or not set, but it is "${value}". Change it in the environment of this command.`,
  );
}

export function readGivenAddresses(env: Env): Partial<Addresses> {
  const given: Partial<Addresses> = {};
  if (env.KAFKA_BROKERS) given.kafkaBrokers = env.KAFKA_BROKERS;
  if (env.MONGODB_URL) given.mongodbUrl = env.MONGODB_URL;
  if (env.REDIS_URL) given.redisUrl = env.REDIS_URL;
  return given;
}

export function readPort(env: Env, name: string, defaultPort: number): number {
  const value = setOr(env, name, String(defaultPort));
  const port = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new StackError(
    `${name} must be a port number from 1 to 65535, but it is "${value}". Change it in the environment of this command.`,
  );
}

/** An empty value counts as not set: `NAME= npm start` and many CI systems unset a variable this way. */
function setOr(env: Env, name: string, fallback: string): string {
  const value = env[name];
  return value === undefined || value === '' ? fallback : value;
}
