import { join } from 'node:path';
import type { BackingName } from '../docker/images.ts';
import { forgetMembers } from '../kafka/forget-members.ts';
import { kafkaParts, startKafka } from './kafka-native.ts';
import { provideParts } from '../machine/install.ts';
import { type Part, REDIS } from '../machine/parts.ts';
import { startMongodb } from './mongodb-native.ts';
import { findMongod, mongodbParts, type MongodSource } from '../mongodb/find-mongod.ts';
import type { Children } from '../processes/children.ts';
import { startRedis } from './redis-native.ts';
import type { BackingPorts } from '../settings.ts';
import type { Log } from '../waiting.ts';

interface NativeOptions {
  stackDir: string;
  ports: BackingPorts;
  children: Children;
  log: Log;
}

/** As processes of this machine, side by side; what they need is there, or all that is missing is told, before. */
export async function startNatively(
  names: readonly BackingName[],
  options: NativeOptions,
): Promise<void> {
  const { children, log } = options;
  const source: MongodSource = names.includes('mongodb')
    ? await findMongod(children, log)
    : { kind: 'none' };
  await provideParts(partsOf(names, source), children, log);
  await Promise.all(names.map((name) => startOne(name, options, source)));
}

function partsOf(names: readonly BackingName[], source: MongodSource): Part[] {
  const parts: Record<BackingName, () => Part[]> = {
    kafka: kafkaParts,
    mongodb: () => mongodbParts(source),
    redis: () => [REDIS],
  };
  return names.flatMap((name) => parts[name]());
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
      return forgetMembers(ports.kafka).catch(() => undefined);
    case 'mongodb':
      return startMongodb({ ...shared, stackDir, source });
    case 'redis':
      return startRedis(shared);
  }
}
