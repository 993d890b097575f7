import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { mongodbUrl, redisUrl } from '@posthorn/platform/service/store-settings.ts';
import { chooseMode, type BackingName } from '../docker/choose-mode.ts';
import { startContainer, type StartedContainer } from './containers.ts';
import { type NeededPort, requireFreePorts, canConnect } from '../machine/ports.ts';
import type { StackProcess } from '../processes/child.ts';
import {
  type Children,
  createChildren,
  type ExitListener,
  inStopOrder,
} from '../processes/children.ts';
import { type Addresses, type BackingPorts, readGivenAddresses, readMode } from '../settings.ts';
import { type Log, settlesWithin } from '../waiting.ts';
import { removeStaleMembers, kafkaPrograms, startKafka, isKafkaReady } from './kafka-native.ts';
import { ensurePrograms, type RequiredProgram, REDIS } from '../machine/required-programs.ts';
import { startMongodb, findMongod, mongodbPrograms, type MongodSource } from './mongodb-native.ts';
import { startRedis } from './redis-native.ts';
import { StackError } from '../stack-error.ts';

interface BackingOptions {
  /** Has the data, the logs and the list of running processes. Only one stack at a time may use it. */
  stackDir: string;
  ports: BackingPorts;
  log: Log;
  /** The processes of the stack that these services belong to. By default they are a stack of their own. */
  children?: Children;
}

interface BackingServices extends Addresses {
  /** The processes that were started; none for given addresses and for containers. */
  processes: StackProcess[];
  stop(): Promise<void>;
  onUnexpectedExit(listener: ExitListener): void;
}

/** Starts those of Kafka, MongoDB and Redis whose addresses are not given, in containers or as processes of this machine. */
export async function startBackingServices(options: BackingOptions): Promise<BackingServices> {
  const given = readGivenAddresses(process.env);
  const mode = readMode(process.env);
  const names = namesToStart(given);
  await requireFreePorts(backingPortsOf(names, options.ports));
  await requireReachable(given);
  mkdirSync(join(options.stackDir, 'logs'), { recursive: true });
  const children = options.children ?? createChildren(options.stackDir);
  const containers: StartedContainer[] = [];
  const stop = async () => {
    for (const container of inStopOrder(containers)) await container.stop();
    await children.stopAll();
  };
  try {
    const isDocker = (await chooseMode(mode, names, options.log)) === 'docker';
    if (isDocker) await startContainers(names, options, containers);
    else await startNatively(names, { ...options, children });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...addressesOf(options.ports, given),
    processes: children.list(),
    stop,
    onUnexpectedExit: (listener) => {
      children.onUnexpectedExit(listener);
    },
  };
}

export function namesToStart(given: Partial<Addresses>): BackingName[] {
  const addresses: [BackingName, string | undefined][] = [
    ['kafka', given.kafkaBrokers],
    ['mongodb', given.mongodbUrl],
    ['redis', given.redisUrl],
  ];
  return addresses.filter(([, address]) => address === undefined).map(([name]) => name);
}

export function backingPortsOf(names: readonly BackingName[], ports: BackingPorts): NeededPort[] {
  const all: (NeededPort & { name: BackingName })[] = [
    { name: 'kafka', port: ports.kafka, use: 'Kafka', variable: 'KAFKA_PORT' },
    {
      name: 'kafka',
      port: ports.kafkaController,
      use: 'the Kafka controller',
      variable: 'KAFKA_CONTROLLER_PORT',
    },
    { name: 'mongodb', port: ports.mongodb, use: 'MongoDB', variable: 'MONGODB_PORT' },
    { name: 'redis', port: ports.redis, use: 'Redis', variable: 'REDIS_PORT' },
  ];
  return all.filter(({ name }) => names.includes(name));
}

function addressesOf(ports: BackingPorts, given: Partial<Addresses>): Addresses {
  return {
    kafkaBrokers: `127.0.0.1:${ports.kafka}`,
    // With the name of the replica set, a client waits until mongod is primary.
    mongodbUrl: `mongodb://127.0.0.1:${ports.mongodb}/posthorn?replicaSet=rs0`,
    redisUrl: `redis://127.0.0.1:${ports.redis}`,
    ...given,
  };
}

async function startContainers(
  names: readonly BackingName[],
  { ports, stackDir }: BackingOptions,
  started: StartedContainer[],
): Promise<void> {
  const starting = names.map(async (name) => {
    started.push(await startContainer(name, ports, stackDir));
  });
  const results = await Promise.allSettled(starting);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

interface NativeOptions {
  stackDir: string;
  ports: BackingPorts;
  children: Children;
  log: Log;
}

/**
 * Starts the services as processes of this machine. Before that, installs missing programs or throws with a list of
 * them.
 */
async function startNatively(names: readonly BackingName[], options: NativeOptions): Promise<void> {
  const { children, log } = options;
  const source: MongodSource = names.includes('mongodb')
    ? await findMongod(children, log)
    : { kind: 'none' };
  await ensurePrograms(programsOf(names, source), children, log);
  await Promise.all(names.map((name) => startOne(name, options, source)));
}

function programsOf(names: readonly BackingName[], source: MongodSource): RequiredProgram[] {
  const programs: Record<BackingName, () => RequiredProgram[]> = {
    kafka: kafkaPrograms,
    mongodb: () => mongodbPrograms(source),
    redis: () => [REDIS],
  };
  return names.flatMap((name) => programs[name]());
}

async function startOne(
  name: BackingName,
  { stackDir, ports, children, log }: NativeOptions,
  source: MongodSource,
): Promise<unknown> {
  const logPath = join(stackDir, 'logs', `${name}.log`);
  const shared = { dir: join(stackDir, name), port: ports[name], children, logPath, log };
  switch (name) {
    case 'kafka':
      await startKafka({ ...shared, controllerPort: ports.kafkaController });
      return removeStaleMembers(ports.kafka).catch(() => undefined);
    case 'mongodb':
      return startMongodb({ ...shared, stackDir, source });
    case 'redis':
      return startRedis(shared);
  }
}

interface HostAndPort {
  host: string;
  port: number;
}

/** Connects to the given addresses. Throws with a list of all that cannot be used. */
export async function requireReachable(given: Partial<Addresses>): Promise<void> {
  // First: of a URL with an unencoded password, what looks like the host is a part of the password.
  const wrong = [
    ...problemsOf('MONGODB_URL', mongodbUrl.safeParse(given.mongodbUrl ?? 'mongodb://unused')),
    ...problemsOf('REDIS_URL', redisUrl.safeParse(given.redisUrl ?? 'redis://unused')),
  ];
  if (wrong.length > 0) throw new StackError(wrong.join('\n'));
  const problems = await Promise.all([
    problemOf('KAFKA_BROKERS', given.kafkaBrokers, parseBrokers, isKafkaReady),
    problemOf('MONGODB_URL', given.mongodbUrl, (url) => parseUrl(url, 27_017)),
    problemOf('REDIS_URL', given.redisUrl, (url) => parseUrl(url, 6_379)),
  ]);
  const lines = problems.filter((problem) => problem !== undefined);
  if (lines.length > 0) throw new StackError(lines.join('\n'));
}

function problemsOf(variable: string, { error }: ReturnType<typeof redisUrl.safeParse>): string[] {
  return error?.issues.map(({ message }) => `${variable} ${message}. ${HOW_TO_FIX}`) ?? [];
}

async function problemOf(
  variable: string,
  value: string | undefined,
  parse: (value: string) => HostAndPort[],
  isReady: (value: string) => Promise<boolean> = () => Promise.resolve(true),
): Promise<string | undefined> {
  if (value === undefined) return undefined;
  const hosts = parse(value);
  if (hosts.length === 0) return `${variable} contains no address. ${HOW_TO_FIX}`;
  // Only host and port are shown: a URL may contain a password.
  const shown = hosts.map(({ host, port }) => `${host}:${port}`).join(', ');
  if (!(await canReachOne(hosts))) {
    return `Cannot connect to ${shown} (${variable}). ${HOW_TO_FIX}`;
  }
  const ready = isReady(value);
  const isUsable = (await settlesWithin(ready, 5_000)) && (await ready);
  return isUsable ? undefined : `No valid reply from ${shown} (${variable}). ${HOW_TO_FIX}`;
}

const HOW_TO_FIX =
  'Correct the variable in the environment of this command, or unset it to start a local one.';

async function canReachOne(hosts: readonly HostAndPort[]): Promise<boolean> {
  const tries = await Promise.all(hosts.map(({ host, port }) => canConnect(host, port, 4_000)));
  return tries.includes(true);
}

export function parseBrokers(brokers: string): HostAndPort[] {
  return brokers.split(',').flatMap((broker) => parseHostAndPort(broker.trim(), 9_092));
}

/** Returns the hosts of a URL; a MongoDB URL may have several. */
export function parseUrl(url: string, defaultPort: number): HostAndPort[] {
  const authority = /^[a-z+]+:\/\/(?:[^/@]*@)?([^/?]+)/.exec(url)?.[1] ?? '';
  return authority.split(',').flatMap((host) => parseHostAndPort(host, defaultPort));
}

function parseHostAndPort(text: string, defaultPort: number): HostAndPort[] {
  const parts = /^(\[[^\]]+\]|[^:\s]+)(?::(\d+))?$/.exec(text);
  if (parts?.[1] === undefined) return [];
  return [{ host: parts[1].replace(/^\[|\]$/g, ''), port: Number(parts[2] ?? defaultPort) }];
}
