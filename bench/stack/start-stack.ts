import { hash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import {
  freePorts,
  startBackingServices,
} from '../../tools/local-stack/stores/backing-services.ts';
import {
  type Child,
  diedMessage,
  type StackProcess,
} from '../../tools/local-stack/processes/child.ts';
import { type Children, createChildren } from '../../tools/local-stack/processes/children.ts';
import { takeLock } from '../../tools/local-stack/processes/lock.ts';
import { endOrphans } from '../../tools/local-stack/processes/recover.ts';
import {
  type Addresses,
  readSettings,
  readWay,
  type Settings,
} from '../../tools/local-stack/settings.ts';
import { StackError } from '../../tools/local-stack/stack-error.ts';
import { type Credentials, provideCompany } from '../../tools/local-stack/supervisor/company.ts';
import {
  opsPortOf,
  type ServiceName,
  SERVICES,
  startServices,
} from '../../tools/local-stack/supervisor/services.ts';
import { setUpStores } from '../../tools/local-stack/supervisor/set-up.ts';
import { narrate } from '../../tools/local-stack/waiting.ts';
import { type MemoryLimits, openMemoryLimits } from '../limits/memory-limits.ts';
import { freePortRow } from './free-port-row.ts';

export interface BenchStack {
  stackDir: string;
  addresses: Addresses;
  credentials: Credentials;
  processes: StackProcess[];
  opsUrlOf: (name: ServiceName) => string;
  /** Null when the services may take what they like. */
  limits: MemoryLimits | null;
  /** Ends one service for the rest of the run: what it would do must not mix with what is measured. */
  stopService: (name: ServiceName) => Promise<void>;
}

export interface StartingStack {
  /** Rejects when a part does not start, and when one ends by itself. */
  started: Promise<BenchStack>;
  died: Promise<never>;
  /** Ends every part and deletes their data. */
  stop: () => Promise<void>;
}

export interface StackOptions {
  /** Flags of Node for the three services. */
  serviceFlags: readonly string[];
  /** The services get no more memory than their pods. */
  isLimited: boolean;
  log: (line: string) => void;
}

/**
 * Stores and services of its own, in a scratch folder on free ports: no stack that runs is touched. The folder belongs
 * to this checkout, so that what a killed run left behind is found and ended.
 */
export async function startStack(options: StackOptions): Promise<StartingStack> {
  const stackDir = join(tmpdir(), `posthorn-bench-${hash('sha1', import.meta.dirname)}`);
  mkdirSync(stackDir, { recursive: true });
  const lock = takeLock(stackDir, 'npm run bench');
  await endOrphans(stackDir, options.log);
  const limits = options.isLimited ? openMemoryLimits(basename(stackDir)) : null;
  const children = createChildren(stackDir);
  const stops: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    await children.stopAll();
    for (const stopOne of stops) await stopOne();
    await limits?.close();
    rmSync(stackDir, { recursive: true, force: true });
    lock.release();
  };
  const onStop = (stopOne: () => Promise<void>) => void stops.push(stopOne);
  const started = bringUp({ children, stackDir, onStop, limits }, options);
  return { started, died: deathOf(children, limits), stop };
}

function deathOf(children: Children, limits: MemoryLimits | null): Promise<never> {
  return new Promise((_, reject) => {
    children.onUnexpectedExit((child, exit) => {
      reject(new StackError(limits?.explain(child.name) ?? diedMessage(child, exit)));
    });
  });
}

interface Place {
  children: Children;
  stackDir: string;
  /** For what is no child process. */
  onStop: (stop: () => Promise<void>) => void;
  limits: MemoryLimits | null;
}

async function bringUp(
  { children, stackDir, onStop, limits }: Place,
  { serviceFlags, log }: StackOptions,
): Promise<BenchStack> {
  takeOverEnvironment(stackDir);
  const settings = await settingsOnFreePorts();
  const { backingPorts: ports, opsPort } = settings;
  const starting = startBackingServices({ stackDir, ports, log, children });
  const backing = await narrate(log, 'Starting Kafka, MongoDB and Redis …', starting);
  onStop(() => backing.stop());
  const { kafkaBrokers, mongodbUrl, redisUrl } = backing;
  const addresses = { kafkaBrokers, mongodbUrl, redisUrl };
  await setUpStores(addresses, children);
  const place = { stackDir, baseUrl: `http://127.0.0.1:${settings.gatewayPort}` };
  const credentials = await provideCompany(place, addresses, children);
  const services = new Map<string, Child>();
  const limited = limits ? underLimits(children, limits) : children;
  await startServices(settings, addresses, asServices(limited, serviceFlags, services));
  return {
    stackDir,
    addresses,
    credentials,
    processes: children.list(),
    limits,
    opsUrlOf: (name) => `http://127.0.0.1:${opsPortOf(name, opsPort)}`,
    stopService: async (name) => services.get(name)?.stop(),
  };
}

/** The code of the local stack reads these; stores that the user has given would get the load otherwise. */
function takeOverEnvironment(stackDir: string): void {
  Object.assign(process.env, {
    STACK_DIR: stackDir,
    // CPU time and memory can be read of processes, not of containers.
    STACK: readWay(process.env) ?? 'native',
    KAFKA_BROKERS: '',
    MONGODB_URL: '',
    REDIS_URL: '',
  });
}

async function settingsOnFreePorts(): Promise<Settings> {
  const [kafka = 0, kafkaController = 0, mongodb = 0, redis = 0, gatewayPort = 0] =
    await freePorts(5);
  const opsPort = await freePortRow(SERVICES.length);
  const backingPorts = { kafka, kafkaController, mongodb, redis };
  return { ...readSettings(process.env), host: '127.0.0.1', backingPorts, gatewayPort, opsPort };
}

/** Starts with these flags of Node, and notes what was started. */
function asServices(
  children: Children,
  flags: readonly string[],
  started: Map<string, Child>,
): Children {
  const start: Children['start'] = (spec) => {
    const child = children.start({ ...spec, args: [...flags, ...spec.args] });
    started.set(child.name, child);
    return child;
  };
  return { ...children, start };
}

function underLimits(children: Children, { startOf, onStarted }: MemoryLimits): Children {
  const start: Children['start'] = (spec) => {
    const service = SERVICES.find((each) => each === spec.name);
    if (service === undefined) return children.start(spec);
    const child = children.start(startOf(service, spec));
    onStarted(service, child);
    return child;
  };
  return { ...children, start };
}
