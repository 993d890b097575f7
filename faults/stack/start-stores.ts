import { join } from 'node:path';
import { ensurePrograms } from '../../tools/local-stack/machine/install-programs.ts';
import { secondBroker } from '../../tools/local-stack/kafka/server-properties.ts';
import { freePorts } from '../../tools/local-stack/machine/ports.ts';
import { REDIS } from '../../tools/local-stack/machine/required-programs.ts';
import { findMongod, mongodbPrograms } from '../../tools/local-stack/mongodb/find-mongod.ts';
import type { Children } from '../../tools/local-stack/processes/children.ts';
import type { Addresses } from '../../tools/local-stack/settings.ts';
import {
  kafkaPrograms,
  newClusterId,
  startKafka,
} from '../../tools/local-stack/stores/kafka-native.ts';
import { startMongodb } from '../../tools/local-stack/stores/mongodb-native.ts';
import { startRedis } from '../../tools/local-stack/stores/redis-native.ts';
import { openStore, type Store } from './store.ts';

export type StoreName = 'kafka' | 'mongodb' | 'redis';

export interface Stores {
  addresses: Addresses;
  kafka: Store;
  mongodb: Store;
  redis: Store;
  /** Starts a broker with id 2 in the cluster of `kafka`. It has no partitions. */
  startSecondBroker: () => Promise<Store>;
}

interface StoresOptions {
  stackDir: string;
  /** Where each store has its data. */
  dirOf: (name: StoreName) => string;
  children: Children;
  log: (line: string) => void;
}

/** Starts the three stores as processes of this machine: containers cannot be suspended one by one. */
export async function startStores(options: StoresOptions): Promise<Stores> {
  const { stackDir, dirOf, children, log } = options;
  const source = await findMongod(children, log);
  await ensurePrograms([...kafkaPrograms(), ...mongodbPrograms(source), REDIS], children, log);
  const [port = 0, controllerPort = 0, mongodbPort = 0, redisPort = 0] = await freePorts(4);
  const clusterId = newClusterId();
  const logOf = (name: StoreName) => join(stackDir, 'logs', `${name}.log`);
  const shared = (name: StoreName) => ({ dir: dirOf(name), children, logPath: logOf(name), log });
  const [kafka, mongodb, redis] = await Promise.all([
    openStore(() => startKafka({ ...shared('kafka'), port, controllerPort, clusterId })),
    openStore(() => startMongodb({ ...shared('mongodb'), port: mongodbPort, stackDir, source })),
    openStore(() => startRedis({ ...shared('redis'), port: redisPort })),
  ]);
  const addresses = {
    kafkaBrokers: `127.0.0.1:${port}`,
    mongodbUrl: `mongodb://127.0.0.1:${mongodbPort}/posthorn?replicaSet=rs0`,
    redisUrl: `redis://127.0.0.1:${redisPort}`,
  };
  const startSecondBroker = (): Promise<Store> =>
    startBroker({ ...shared('kafka'), clusterId, controllerPort });
  return { addresses, kafka, mongodb, redis, startSecondBroker };
}

interface BrokerOptions {
  /** Of the first broker. */
  dir: string;
  logPath: string;
  clusterId: string;
  controllerPort: number;
  children: Children;
  log: (line: string) => void;
}

async function startBroker({
  dir,
  logPath,
  controllerPort,
  ...shared
}: BrokerOptions): Promise<Store> {
  const [port = 0] = await freePorts(1);
  const properties = secondBroker({ port, controllerPort });
  const own = { dir: join(dir, 'second'), logPath: logPath.replace('kafka', 'kafka-2') };
  return openStore(() =>
    startKafka({ ...shared, ...own, port, controllerPort, properties, name: 'kafka-2' }),
  );
}
