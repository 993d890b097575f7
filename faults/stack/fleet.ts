import type { Stop } from '../audit/evidence.ts';
import type { Child } from '../../tools/local-stack/processes/child.ts';
import type { Children } from '../../tools/local-stack/processes/children.ts';
import { signalGroup } from '../../tools/local-stack/processes/signal-group.ts';
import { type ServiceName, SERVICES } from '../../tools/local-stack/supervisor/services.ts';

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

export interface FleetDeps {
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
    const member = MEMBERS.find((each) => each === child.name);
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
