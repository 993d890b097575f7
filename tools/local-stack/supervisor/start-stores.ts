import { backingPortsOf, namesToStart, startBackingServices } from '../stores/backing-services.ts';
import { type NeededPort, requireFreePorts } from '../machine/ports.ts';
import type { Addresses, Settings } from '../settings.ts';
import { logIfSlow } from '../waiting.ts';
import { SERVICES, opsPortOf } from './services.ts';
import { setUpStores } from './set-up-stores.ts';
import { writeStackFile } from './stack-file.ts';
import type { Stack } from './supervise.ts';

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
export async function requireStackPorts(settings: Settings): Promise<void> {
  const gateway = { port: settings.gatewayPort, use: 'the gateway', variable: 'PORT' };
  const ops = SERVICES.map((name): NeededPort => ({
    port: opsPortOf(name, settings.opsPort),
    use: `the management port of the ${name}`,
    variable: 'OPS_PORT (the first of three)',
  }));
  const backing = backingPortsOf(namesToStart(settings.given), settings.backingPorts);
  await requireFreePorts([gateway, ...ops, ...backing]);
}
