import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts, requireFreePorts } from '../../tools/local-stack/machine/ports.ts';
import { startBackingServices } from '../../tools/local-stack/stores/backing-services.ts';
import {
  type Child,
  unexpectedExitMessage,
  type StackProcess,
} from '../../tools/local-stack/processes/child.ts';
import { type Children, createChildren } from '../../tools/local-stack/processes/children.ts';
import { takeLock } from '../../tools/local-stack/processes/lock.ts';
import { endOrphans } from '../../tools/local-stack/supervisor/end-orphans.ts';
import {
  type Addresses,
  readSettings,
  readMode,
  type Settings,
} from '../../tools/local-stack/settings.ts';
import { StackError } from '../../tools/local-stack/stack-error.ts';
import {
  createCompany,
  type Credentials,
  ensureCompany,
} from '../../tools/local-stack/supervisor/development-company.ts';
import {
  ALL_SERVICES,
  opsPortOf,
  processNameOf,
  type ServiceName,
  SERVICES,
  startServices,
  type UsualService,
} from '../../tools/local-stack/supervisor/services.ts';
import { setUpStores } from '../../tools/local-stack/supervisor/set-up-stores.ts';
import { logIfSlow } from '../../tools/local-stack/waiting.ts';
import { type MemoryLimits, openMemoryLimits } from '../memory-limits.ts';

export interface BenchStack {
  stackDir: string;
  addresses: Addresses;
  credentials: Credentials;
  /** Creates one more company with an API key. */
  createCompany: (name: string) => Promise<Credentials>;
  processes: StackProcess[];
  /** The address of each gateway; that of the credentials is the first. */
  gatewayUrls: readonly string[];
  /** The management address of each process of a service, by its name: "gateway", "gateway-2". */
  opsUrls: ReadonlyMap<string, string>;
  /** The management address of the first process of a service. */
  opsUrlOf: (name: ServiceName) => string;
  /** Null when the memory of the services is not limited. */
  limits: MemoryLimits | null;
  /** Stops one service for the rest of the run, so that its work does not disturb the measurement. */
  stopService: (name: ServiceName) => Promise<void>;
}

interface StartingStack {
  /** Rejects when a part does not start. */
  started: Promise<BenchStack>;
  /** Rejects when a part exits by itself. */
  died: Promise<never>;
  /** Stops every part and deletes their data. */
  stop: () => Promise<void>;
}

interface StackOptions {
  /** Flags of Node for the services. */
  serviceFlags: readonly string[];
  /** The services get no more memory than their pods. Only the first process of each is limited. */
  isLimited: boolean;
  /** Continues with the stores of the last run, if that kept them, and keeps them. */
  keepsStores: boolean;
  processesOf: (service: UsualService) => number;
  ingests: boolean;
  log: (line: string) => void;
}

/**
 * Starts its own stores and services, in a temporary folder and on free ports: a running stack is not touched. The
 * folder belongs to this checkout, so that processes left behind by a killed run are found and stopped.
 */
export async function startStack(options: StackOptions): Promise<StartingStack> {
  const stackDir = join(tmpdir(), `posthorn-bench-${hash('sha1', import.meta.dirname)}`);
  mkdirSync(stackDir, { recursive: true });
  const lock = takeLock(stackDir, 'npm run bench');
  await endOrphans(stackDir, options.log);
  if (!options.keepsStores) deleteData(stackDir);
  const limits = options.isLimited ? openMemoryLimits() : null;
  const children = createChildren(stackDir);
  const stops: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    await children.stopAll();
    for (const stopOne of stops) await stopOne();
    if (!options.keepsStores) rmSync(stackDir, { recursive: true, force: true });
    lock.release();
  };
  const onStop = (stopOne: () => Promise<void>) => void stops.push(stopOne);
  const started = bringUp({ children, stackDir, onStop, limits }, options);
  return { started, died: rejectOnExit(children, limits), stop };
}

/** Deletes everything in the folder except the lock. */
function deleteData(stackDir: string): void {
  for (const name of readdirSync(stackDir).filter((each) => each !== 'lock')) {
    rmSync(join(stackDir, name), { recursive: true, force: true });
  }
}

function rejectOnExit(children: Children, limits: MemoryLimits | null): Promise<never> {
  return new Promise((_, reject) => {
    children.onUnexpectedExit((child, exit) => {
      reject(new StackError(limits?.explain(child.name) ?? unexpectedExitMessage(child, exit)));
    });
  });
}

interface StackParts {
  children: Children;
  stackDir: string;
  /** For parts that are not child processes. */
  onStop: (stop: () => Promise<void>) => void;
  limits: MemoryLimits | null;
}

async function bringUp(
  parts: StackParts,
  { serviceFlags, log, ...options }: StackOptions,
): Promise<BenchStack> {
  const { children, stackDir, limits } = parts;
  overrideEnvironment(stackDir);
  const settings = await settingsOnFreePorts();
  const { backingPorts: ports } = settings;
  const starting = startBackingServices({ stackDir, ports, log, children });
  const backing = await logIfSlow(log, 'Starting Kafka, MongoDB and Redis …', starting);
  parts.onStop(() => backing.stop());
  const { kafkaBrokers, mongodbUrl, redisUrl } = backing;
  const addresses = { kafkaBrokers, mongodbUrl, redisUrl };
  await setUpStores(addresses, children);
  const baseUrl = gatewayUrlOf(settings);
  const credentials = await ensureCompany({ stackDir, baseUrl }, addresses, children);
  const services = new Map<string, Child>();
  const opsUrls = new Map<string, string>();
  const gatewayUrls: string[] = [];
  const flagged = asServices(parts, serviceFlags, services);
  for (const each of await placesOf(options, settings)) {
    await startServices(each.settings, addresses, flagged, each);
    if (each.services.includes('gateway')) gatewayUrls.push(gatewayUrlOf(each.settings));
    for (const service of each.services) {
      opsUrls.set(processNameOf(service, each.number), opsUrlOf(service, each.settings));
    }
  }
  return {
    stackDir,
    addresses,
    credentials,
    gatewayUrls,
    opsUrls,
    createCompany: async (name) => ({
      baseUrl,
      ...(await createCompany(name, addresses, children)),
    }),
    processes: children.list(),
    limits,
    opsUrlOf: (name) => opsUrlOf(name, settings),
    stopService: async (name) => services.get(name)?.stop(),
  };
}

/** The local stack reads these variables. Otherwise stores configured by the user would get the load. */
function overrideEnvironment(stackDir: string): void {
  Object.assign(process.env, {
    STACK_DIR: stackDir,
    // CPU time and memory can be read for processes, not for containers.
    STACK: readMode(process.env) ?? 'native',
    KAFKA_BROKERS: '',
    MONGODB_URL: '',
    REDIS_URL: '',
    // An app of a benchmark may have 100,000.
    QUOTA_WEBHOOKS_PER_APP: '1000000',
  });
}

async function settingsOnFreePorts(): Promise<Settings> {
  const [kafka = 0, kafkaController = 0, mongodb = 0, redis = 0, gatewayPort = 0] =
    await freePorts(5);
  const opsPort = await findFreePortRange(ALL_SERVICES.length);
  const backingPorts = { kafka, kafkaController, mongodb, redis };
  return { ...readSettings(process.env), host: '127.0.0.1', backingPorts, gatewayPort, opsPort };
}

interface ServicePlace {
  services: ServiceName[];
  number: number;
  settings: Settings;
}

/** Returns the first processes of all services, then the second ones on ports of their own, and so on. */
async function placesOf(
  { processesOf, ingests }: Pick<StackOptions, 'processesOf' | 'ingests'>,
  settings: Settings,
): Promise<ServicePlace[]> {
  const services = ingests ? [...ALL_SERVICES] : [...SERVICES];
  const places: ServicePlace[] = [{ services, number: 1, settings }];
  for (let number = 2; number <= Math.max(...SERVICES.map(processesOf)); number += 1) {
    const more = SERVICES.filter((service) => processesOf(service) >= number);
    const [gatewayPort = 0] = await freePorts(1);
    const opsPort = await findFreePortRange(ALL_SERVICES.length);
    places.push({ services: more, number, settings: { ...settings, gatewayPort, opsPort } });
  }
  return places;
}

function gatewayUrlOf({ gatewayPort }: Settings): string {
  return `http://127.0.0.1:${gatewayPort}`;
}

function opsUrlOf(service: ServiceName, { opsPort }: Settings): string {
  return `http://127.0.0.1:${opsPortOf(service, opsPort)}`;
}

/** Starts the services with these flags of Node and under these limits, and adds them to `started`. */
function asServices(
  { children, limits }: StackParts,
  flags: readonly string[],
  started: Map<string, Child>,
): Children {
  const start: Children['start'] = (spec) => {
    const child = children.start({ ...spec, args: [...flags, ...spec.args] });
    const service = SERVICES.find((each) => each === spec.name);
    if (service !== undefined) limits?.onStarted(service, child);
    started.set(child.name, child);
    return child;
  };
  return { ...children, start };
}

/** Returns the first of this many consecutive free ports. Throws the error that names the ports in use when there is none. */
async function findFreePortRange(length: number, triesLeft = 20): Promise<number> {
  const [first = 0] = await freePorts(1);
  const known = { use: 'a management port', variable: 'OPS_PORT' };
  try {
    await requireFreePorts(Array.from({ length }, (_, n) => ({ port: first + n, ...known })));
    return first;
  } catch (error) {
    if (triesLeft > 0) return findFreePortRange(length, triesLeft - 1);
    throw error;
  }
}
