import { join } from 'node:path';
import { ENTRIES } from '../../deploy/posthorn.ts';
import type { Stop } from '../audit/evidence.ts';
import { type Child, failOnExit, signalGroup } from '../../tools/local-stack/processes/child.ts';
import type { Children } from '../../tools/local-stack/processes/children.ts';
import {
  type ServiceName,
  SERVICES,
  NODE_FLAGS,
} from '../../tools/local-stack/supervisor/services.ts';
import { waitUntil } from '../../tools/local-stack/waiting.ts';

/** How the stack of a round differs from the usual one. Rounds of one layout may share a stack. */
export interface Layout {
  /** Settings of every program. */
  settings: Readonly<Record<string, string>>;
  /** Which processes reach Kafka through a proxy. */
  kafkaProxy: 'none' | 'all' | 'dispatcher-1';
  /** Whether Redis is reached through a proxy. */
  hasRedisProxy: boolean;
  /** Whether MongoDB is reached through a proxy. */
  hasMongodbProxy: boolean;
  /** A store whose data lie on a disk of this size, in MiB. */
  smallDisk: { store: 'kafka' | 'mongodb'; mebibytes: number } | null;
  /** Whether the clock of each service can be set. */
  hasOwnClocks: boolean;
}

/** Short enough that every attempt of a schedule belongs to its round. */
export const DELAYS_MS = [2_000, 3_000, 5_000];

export const USUAL_LAYOUT: Layout = {
  settings: {
    RETRY_DELAYS: DELAYS_MS.map((ms) => `${ms}ms`).join(','),
    DEFERRAL_DELAYS: '1s,5s,15s,1m',
    TOPIC_PARTITIONS: '12',
    EGRESS_ALLOW_LOOPBACK: 'true',
    EGRESS_ALLOW_HTTP: 'true',
    // Every receiver is on this machine.
    HOST_ATTEMPTS_PER_SECOND: '0',
  },
  kafkaProxy: 'none',
  hasRedisProxy: false,
  hasMongodbProxy: false,
  smallDisk: null,
  hasOwnClocks: false,
};

/** The services whose clocks can be set. */
export const CLOCKED = ['gateway', 'dispatcher', 'retry'] as const;

export type Clocked = (typeof CLOCKED)[number];

/** One of two: `gateway-1`, `gateway-2`, … */
export type Member = `${ServiceName}-${number}`;

/** The services of a stack: two processes of each. */
export interface Fleet {
  /** Starts a member unless it runs, and resolves when it is ready. One that ends by itself is started again. */
  start: (member: Member, changed?: Changed) => Promise<void>;
  /** SIGKILL; resolves when the process has exited. */
  kill: (member: Member) => Promise<Killed>;
  /** Suspends the process with SIGSTOP. */
  freeze: (member: Member) => void;
  /** Resumes it. */
  thaw: (member: Member) => void;
  /** SIGTERM; resolves when it has ended, however it did. */
  stop: (member: Member) => Promise<void>;
  running: () => Member[];
  pidOf: (member: Member) => number;
  /** Returns the stops and crashes since the last call. */
  takeEnds: () => Ends;
}

/** In milliseconds since 1970. A process goes on sending for some milliseconds after the signal was sent. */
export interface Killed {
  /** When the signal was sent. */
  sinceMs: number;
  /** When the process had exited. */
  untilMs: number;
}

export interface Ends {
  stops: Stop[];
  crashes: string[];
}

/** How a member differs from the others. */
export interface Changed {
  /** The folder with its sources; that of this checkout by default. */
  root?: string;
  env?: Record<string, string>;
}

interface FleetDeps {
  children: Pick<Children, 'onUnexpectedExit'>;
  launch: (member: Member, changed: Changed) => Running;
}

interface Running {
  child: Child;
  /** Rejects when it ends before that. */
  ready: Promise<void>;
}

export const MEMBERS: readonly Member[] = [1, 2].flatMap((number) =>
  SERVICES.map((service): Member => `${service}-${number}`),
);
/** Started by the rounds that ingest topics. */
export const INGESTING: readonly Member[] = ['ingest-1', 'ingest-2', 'ingest-3'];
export const ALL_MEMBERS: readonly Member[] = [...MEMBERS, ...INGESTING];

/** Longer than the drain timeout and the closing of a service, 35 s, so that a stop that is too slow is measured. */
export const KILLED_AFTER_MS = 60_000;
/** Not at once: a service that cannot start must not use up the CPU. */
const RESTARTED_AFTER_MS = 1_000;
/** More at once are not ready sooner on two cores. */
const STARTED_AT_ONCE = 3;

export function createFleet({ children, launch }: FleetDeps): Fleet {
  const running = new Map<Member, Running>();
  const changes = new Map<Member, Changed>();
  let ends: Ends = { stops: [], crashes: [] };
  const childOf = (member: Member): Child => {
    const found = running.get(member);
    if (!found) throw new Error(`${member} does not run.`);
    return found.child;
  };
  const leave = (member: Member): Child => {
    const child = childOf(member);
    running.delete(member);
    return child;
  };
  const start: Fleet['start'] = async (member, changed = changes.get(member) ?? {}) => {
    changes.set(member, changed);
    const started = running.get(member) ?? launch(member, changed);
    running.set(member, started);
    await started.ready;
  };
  children.onUnexpectedExit((child, exit) => {
    const member = ALL_MEMBERS.find((each) => each === child.name);
    if (!member) return;
    ends.crashes.push(`${member}: ${exit}`);
    running.delete(member);
    // As Kubernetes does. Without Kafka the next one ends as well.
    setTimeout(() => void start(member).catch(() => undefined), RESTARTED_AFTER_MS);
  });
  return {
    start,
    kill: (member) => kill(leave(member)),
    freeze(member) {
      signalGroup(childOf(member).pid, 'SIGSTOP');
    },
    thaw(member) {
      signalGroup(childOf(member).pid, 'SIGCONT');
    },
    async stop(member) {
      ends.stops.push(await stopChild(member, leave(member)));
    },
    running: () => [...running.keys()],
    pidOf: (member) => childOf(member).pid,
    takeEnds: () => {
      const taken = ends;
      ends = { stops: [], crashes: [] };
      return taken;
    },
  };
}

async function kill(child: Child): Promise<Killed> {
  const sinceMs = Date.now();
  await child.kill();
  return { sinceMs, untilMs: Date.now() };
}

async function stopChild(member: Member, child: Child): Promise<Stop> {
  const startedMs = performance.now();
  await child.stop();
  const exit = await child.exited;
  return { service: member, tookMs: performance.now() - startedMs, exit };
}

/** Starts these members, some at a time. */
export async function startMembers(fleet: Fleet, members: readonly Member[]): Promise<void> {
  const queue = [...members];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) await fleet.start(next);
  };
  await Promise.all(Array.from({ length: STARTED_AT_ONCE }, worker));
}

const ROOT = join(import.meta.dirname, '../..');
const READY_WITHIN_MS = 120_000;

interface LaunchDeps {
  stackDir: string;
  children: Children;
  ports: ReadonlyMap<Member, MemberPorts>;
  /** The settings of a member. */
  envOf: (member: Member) => NodeJS.ProcessEnv;
}

export interface MemberPorts {
  /** Of the API; used by gateways only. */
  port: number;
  opsPort: number;
}

/** Starts a process of a service, with a log of its own for each start. */
export function createLaunch({ stackDir, children, ports, envOf }: LaunchDeps) {
  let starts = 0;
  return (member: Member, { root = ROOT, env = {} }: Changed) => {
    const { port, opsPort } = ports.get(member) ?? { port: 0, opsPort: 0 };
    const child = children.start({
      name: member,
      command: process.execPath,
      args: [...NODE_FLAGS, join(root, ENTRIES[serviceOf(member)])],
      env: { ...envOf(member), ...env, PORT: String(port), OPS_PORT: String(opsPort) },
      cwd: root,
      port: opsPort,
      logPath: join(stackDir, 'logs', `${member}-start-${(starts += 1)}.log`),
      stopTimeoutMs: KILLED_AFTER_MS,
    });
    return { child, ready: untilReady(child, opsPort) };
  };
}

export function serviceOf(member: Member): ServiceName {
  return member.slice(0, member.lastIndexOf('-')) as ServiceName;
}

async function untilReady(child: Child, opsPort: number): Promise<void> {
  const what = `${child.name} to be ready (log: ${child.log})`;
  const poll = { what, timeoutMs: READY_WITHIN_MS, intervalMs: 100 };
  await failOnExit(
    child,
    waitUntil(poll, () => isReady(opsPort)),
  );
}

async function isReady(opsPort: number): Promise<boolean> {
  try {
    const url = `http://127.0.0.1:${opsPort}/readyz`;
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).status === 200;
  } catch {
    return false;
  }
}
