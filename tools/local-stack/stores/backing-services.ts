import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chooseWay } from '../docker/choose-way.ts';
import { startContainer, type StartedContainer } from '../docker/containers.ts';
import type { BackingName } from '../docker/images.ts';
import { freePorts, type NeededPort, requireFreePorts } from '../machine/ports.ts';
import { requireReachable } from '../machine/reachable.ts';
import { startNatively } from './native-services.ts';
import type { StackProcess } from '../processes/child.ts';
import { type Children, createChildren, type ExitListener } from '../processes/children.ts';
import { inStopOrder } from '../processes/stop-order.ts';
import { type Addresses, type BackingPorts, readGivenAddresses, readWay } from '../settings.ts';
import type { Log } from '../waiting.ts';

export { freePorts };

export interface BackingOptions {
  /** Data, logs and the record of running processes. One stack at a time. */
  stackDir: string;
  ports: BackingPorts;
  log: Log;
  /** The processes of a larger stack that these belong to. */
  children?: Children;
}

export interface BackingServices extends Addresses {
  /** Those started here: none for an address that was given, none for a container. */
  processes: StackProcess[];
  stop(): Promise<void>;
  onUnexpectedExit(listener: ExitListener): void;
}

/** Kafka, MongoDB and Redis: each at its given address, or started in containers or as processes of this machine. */
export async function startBackingServices(options: BackingOptions): Promise<BackingServices> {
  const given = readGivenAddresses(process.env);
  const way = readWay(process.env);
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
    const isDocker = (await chooseWay(way, names, options.log)) === 'docker';
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
      use: 'the controller of Kafka',
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
    // By the name of the replica set, so that a client waits for the primary instead of meeting a mongod that is not yet it.
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
