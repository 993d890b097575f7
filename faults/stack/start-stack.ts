import { hash } from 'node:crypto';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServiceClock, type ServiceClock } from '../../test/support/process/service-clock.ts';
import { freePorts } from '../../tools/local-stack/machine/ports.ts';
import { type Children, createChildren } from '../../tools/local-stack/processes/children.ts';
import { takeLock } from '../../tools/local-stack/processes/lock.ts';
import { signalGroup } from '../../tools/local-stack/processes/child.ts';
import { endOrphans } from '../../tools/local-stack/supervisor/end-orphans.ts';
import { NODE_FLAGS, programEnv } from '../../tools/local-stack/supervisor/services.ts';
import { startReceiver, type Receiver } from '../load/receiver.ts';
import type { Company } from '../load/traffic.ts';
import {
  createFleet,
  type Fleet,
  type Member,
  ALL_MEMBERS,
  CLOCKED,
  type Clocked,
  MEMBERS,
  startMembers,
  createLaunch,
  type MemberPorts,
  type Layout,
} from './fleet.ts';
import { openProxies, type Proxies } from './proxies.ts';
import {
  mountSmallDisk,
  type SmallDisk,
  unmountIfMounted,
  startStores,
  type StoreName,
  type Stores,
} from './start-stores.ts';

const ROOT = join(import.meta.dirname, '../..');
/** It belongs to this checkout, so that what a killed run left behind is found. */
const STACK_DIR = join(tmpdir(), `posthorn-faults-${hash('sha1', import.meta.dirname)}`);
const DISK = join(STACK_DIR, 'disk');

type ServiceClocks = Readonly<Record<Clocked, ServiceClock>>;

export interface FaultStack {
  stackDir: string;
  layout: Layout;
  stores: Stores;
  fleet: Fleet;
  proxies: Proxies;
  disk: SmallDisk | null;
  clocks: ServiceClocks | null;
  receiver: Receiver;
  baseUrls: readonly string[];
  opsUrlOf: (member: Member) => string;
  companies: readonly Company[];
  /** Runs a program of this checkout on the stack; returns what it printed. */
  run: (path: string, args?: readonly string[], env?: Record<string, string>) => Promise<string>;
}

export interface StackFolder {
  start: (layout: Layout) => Promise<FaultStack>;
  /** Stops what the last `start` has started; its data are deleted. */
  stop: () => Promise<void>;
  /** Copies the logs of the present stack. */
  copyLogs: (to: string) => void;
  close: () => Promise<void>;
}

/** Locks the folder of the suite. One stack runs in it at a time. */
export async function openStackFolder(log: (line: string) => void): Promise<StackFolder> {
  mkdirSync(STACK_DIR, { recursive: true });
  const lock = takeLock(STACK_DIR, 'npm run faults');
  await endOrphans(STACK_DIR, log);
  unmountIfMounted(DISK);
  overrideEnvironment();
  const closers: (() => Promise<void> | void)[] = [];
  let children = createChildren(STACK_DIR);
  const stop = async (): Promise<void> => {
    endMembers(children);
    await children.stopAll();
    for (const close of closers.splice(0).reverse()) await close();
    for (const name of ['kafka', 'mongodb', 'redis', 'logs']) {
      rmSync(join(STACK_DIR, name), { recursive: true, force: true });
    }
    children = createChildren(STACK_DIR);
  };
  return {
    start: (layout) => bringUp({ layout, children, closers, log }),
    stop,
    copyLogs: (to) => {
      cpSync(join(STACK_DIR, 'logs'), to, { recursive: true });
    },
    async close() {
      await stop();
      rmSync(STACK_DIR, { recursive: true, force: true });
      lock.release();
    },
  };
}

/** A suspended process does not react to SIGTERM, and services would wait for stores that are gone. */
function endMembers(children: Children): void {
  for (const { name, pid } of children.list()) {
    signalGroup(pid, 'SIGCONT');
    if (ALL_MEMBERS.includes(name as Member)) signalGroup(pid, 'SIGKILL');
  }
}

/** The local stack reads these variables. Without this, the faults would hit stores that the user has configured. */
function overrideEnvironment(): void {
  Object.assign(process.env, {
    STACK_DIR,
    STACK: 'native',
    KAFKA_BROKERS: '',
    MONGODB_URL: '',
    REDIS_URL: '',
  });
}

/** Creates a clock for each service, which its processes share. */
function createClocks(closers: Parts['closers']): ServiceClocks {
  const clocks = {
    gateway: createServiceClock(),
    dispatcher: createServiceClock(),
    retry: createServiceClock(),
  };
  closers.push(() => {
    for (const service of CLOCKED) clocks[service].remove();
  });
  return clocks;
}

function settingsOfClock(clocks: ServiceClocks | null, member: Member): Record<string, string> {
  const service = CLOCKED.find((each) => member.startsWith(each));
  return (service && clocks?.[service].settings) ?? {};
}

interface Parts {
  layout: Layout;
  children: Children;
  closers: (() => Promise<void> | void)[];
  log: (line: string) => void;
}

async function bringUp({ layout, children, closers, log }: Parts): Promise<FaultStack> {
  const disk = openDisk(layout, closers);
  const dirOf = (name: StoreName): string =>
    disk && layout.smallDisk?.store === name ? join(DISK, name) : join(STACK_DIR, name);
  const stores = await startStores({ stackDir: STACK_DIR, dirOf, children, log });
  const proxies = await openProxies(layout, stores.addresses);
  closers.push(() => proxies.close());
  const clocks = layout.hasOwnClocks ? createClocks(closers) : null;
  const env = { ...programEnv(stores.addresses), ...layout.settings };
  const run = createRun(children, env);
  await Promise.all([run('deploy/setup/create-topics.ts'), run('deploy/setup/create-indexes.ts')]);
  const ports = await portsOfMembers();
  const envOf = (member: Member) => ({
    ...env,
    ...proxies.envOf(member),
    ...settingsOfClock(clocks, member),
  });
  const launch = createLaunch({ stackDir: STACK_DIR, children, ports, envOf });
  const fleet = createFleet({ children, launch });
  const companies = [await createCompany(run, 'One'), await createCompany(run, 'Two')];
  await startMembers(fleet, MEMBERS);
  const receiver = await startReceiver();
  closers.push(() => receiver.close());
  const portsOf = (member: Member): MemberPorts => ports.get(member) ?? { port: 0, opsPort: 0 };
  return {
    stackDir: STACK_DIR,
    layout,
    stores,
    fleet,
    proxies,
    disk,
    clocks,
    receiver,
    companies,
    run,
    baseUrls: MEMBERS.filter((each) => each.startsWith('gateway')).map(
      (each) => `http://127.0.0.1:${portsOf(each).port}`,
    ),
    opsUrlOf: (member) => `http://127.0.0.1:${portsOf(member).opsPort}`,
  };
}

function openDisk({ smallDisk }: Layout, closers: Parts['closers']): SmallDisk | null {
  if (!smallDisk) return null;
  const disk = mountSmallDisk(DISK, smallDisk.mebibytes);
  closers.push(() => {
    disk.unmount();
  });
  return disk;
}

async function portsOfMembers(): Promise<ReadonlyMap<Member, MemberPorts>> {
  const free = await freePorts(ALL_MEMBERS.length * 2);
  return new Map(
    ALL_MEMBERS.map((member, index) => {
      const [port = 0, opsPort = 0] = free.slice(index * 2);
      return [member, { port, opsPort }];
    }),
  );
}

function createRun(children: Children, env: NodeJS.ProcessEnv): FaultStack['run'] {
  return (path, args = [], changed = {}) =>
    children.run({
      name: path,
      command: process.execPath,
      args: [...NODE_FLAGS, join(ROOT, path), ...args],
      env: { ...env, ...changed },
      cwd: ROOT,
    });
}

async function createCompany(run: FaultStack['run'], name: string): Promise<Company> {
  const printed = await run('services/admin/src/main.ts', ['company', 'create', name, '--json']);
  return JSON.parse(printed) as Company;
}
