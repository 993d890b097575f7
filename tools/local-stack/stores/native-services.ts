import { join } from 'node:path';
import type { BackingName } from '../docker/images.ts';
import { removeStaleMembers } from '../kafka/remove-stale-members.ts';
import { kafkaPrograms, startKafka } from './kafka-native.ts';
import { ensurePrograms } from '../machine/install-programs.ts';
import { type RequiredProgram, REDIS } from '../machine/required-programs.ts';
import { startMongodb } from './mongodb-native.ts';
import { findMongod, mongodbPrograms, type MongodSource } from '../mongodb/find-mongod.ts';
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

/**
 * Starts the services as processes of this machine. Before that, installs missing programs or throws with a list of
 * them.
 */
export async function startNatively(
  names: readonly BackingName[],
  options: NativeOptions,
): Promise<void> {
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
