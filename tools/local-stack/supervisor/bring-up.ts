import { backingPortsOf, namesToStart, startBackingServices } from '../stores/backing-services.ts';
import { type NeededPort, requireFreePorts } from '../machine/ports.ts';
import type { Addresses, Settings } from '../settings.ts';
import { narrate } from '../waiting.ts';
import { SERVICES, opsPortOf } from './services.ts';
import { setUpStores } from './set-up.ts';
import { writeStackFile } from './stack-file.ts';
import type { Stack } from './supervise.ts';

/** Kafka, MongoDB and Redis with topics and indexes. */
export async function bringUpStores(stack: Stack): Promise<Addresses> {
  const { settings, children, log } = stack;
  const { stackDir, backingPorts: ports } = settings;
  const starting = startBackingServices({ stackDir, ports, log, children });
  const backing = await narrate(log, 'Starting Kafka, MongoDB and Redis …', starting);
  stack.onStop(() => backing.stop());
  const { kafkaBrokers, mongodbUrl, redisUrl } = backing;
  const addresses = { kafkaBrokers, mongodbUrl, redisUrl };
  // Already here, so that what was started can be found should the set-up hang.
  writeStackFile(stackDir, { processes: children.list(), ...addresses });
  await narrate(log, 'Creating topics and indexes …', setUpStores(addresses, children));
  return addresses;
}

/** All ports of the whole stack at once, before anything heavy starts: one message names all that are taken. */
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
