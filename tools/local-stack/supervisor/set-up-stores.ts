import { join } from 'node:path';
import { backingPortsOf, namesToStart, startBackingServices } from '../stores/backing-services.ts';
import { type NeededPort, requireFreePorts } from '../machine/ports.ts';
import type { Addresses, Settings } from '../settings.ts';
import { logIfSlow } from '../waiting.ts';
import { ALL_SERVICES, opsPortOf, NODE_FLAGS, programEnv } from './services.ts';
import { writeStackFile } from './stack-file.ts';
import type { Stack } from './supervise.ts';
import type { Children } from '../processes/children.ts';

/** Starts Kafka, MongoDB and Redis, and creates topics and indexes. */
export async function startStores(stack: Stack): Promise<Addresses> {
  const { settings, children, log } = stack;
  const { stackDir, backingPorts: ports } = settings;
  const starting = startBackingServices({ stackDir, ports, log, children });
  const backing = await logIfSlow(log, 'Starting Kafka, MongoDB and Redis …', starting);
  stack.onStop(() => backing.stop());
  const { kafkaBrokers, mongodbUrl, redisUrl } = backing;
  const addresses = { kafkaBrokers, mongodbUrl, redisUrl };
  // Written before the set-up, so that the processes can be found if it hangs.
  writeStackFile(stackDir, { processes: children.list(), ...addresses });
  await logIfSlow(log, 'Creating topics and indexes …', setUpStores(addresses, children));
  return addresses;
}

/** Checks all ports of the stack before anything starts. Throws with a list of all that are in use. */
export async function requireStackPorts(
  settings: Settings,
  others: readonly NeededPort[] = [],
): Promise<void> {
  const gateway = { port: settings.gatewayPort, use: 'the gateway', variable: 'PORT' };
  const ops = ALL_SERVICES.map((name): NeededPort => ({
    port: opsPortOf(name, settings.opsPort),
    use: `the management port of the ${name}`,
    variable: 'OPS_PORT (the first of four)',
  }));
  const backing = backingPortsOf(namesToStart(settings.given), settings.backingPorts);
  await requireFreePorts([gateway, ...ops, ...backing, ...others]);
}

const ROOT = join(import.meta.dirname, '../../..');

/** Creates missing topics and indexes with the same programs as in production. */
export async function setUpStores(addresses: Addresses, children: Children): Promise<void> {
  await Promise.all([
    runProgram('Creating the topics', 'deploy/setup/create-topics.ts', [], addresses, children),
    runProgram('Creating the indexes', 'deploy/setup/create-indexes.ts', [], addresses, children),
  ]);
}

/** Runs a program of Posthorn on the stack and returns its standard output. Throws if it fails. */
export async function runProgram(
  name: string,
  entry: string,
  args: readonly string[],
  addresses: Addresses,
  children: Children,
): Promise<string> {
  return children.run({
    name,
    command: process.execPath,
    args: [...NODE_FLAGS, join(ROOT, entry), ...args],
    env: programEnv(addresses),
    cwd: ROOT,
  });
}
