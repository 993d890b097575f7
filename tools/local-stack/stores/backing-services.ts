import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chooseMode } from '../docker/choose-mode.ts';
import { startContainer, type StartedContainer } from '../docker/containers.ts';
import type { BackingName } from '../docker/images.ts';
import { type NeededPort, requireFreePorts } from '../machine/ports.ts';
import { requireReachable } from './require-reachable.ts';
import { startNatively } from './native-services.ts';
import type { StackProcess } from '../processes/child.ts';
import { type Children, createChildren, type ExitListener } from '../processes/children.ts';
import { inStopOrder } from '../processes/stop-order.ts';
import { type Addresses, type BackingPorts, readGivenAddresses, readMode } from '../settings.ts';
import type { Log } from '../waiting.ts';

export interface BackingOptions {
  /** Has the data, the logs and the list of running processes. Only one stack at a time may use it. */
  stackDir: string;
  ports: BackingPorts;
  log: Log;
  /** The processes of the stack that these services belong to. By default they are a stack of their own. */
  children?: Children;
}

export interface BackingServices extends Addresses {
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
