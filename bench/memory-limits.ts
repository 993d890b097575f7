import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { SERVICES, type UsualService } from '../tools/local-stack/supervisor/services.ts';
import type { PerService } from './measure/per-service.ts';
import {
  memoryHierarchyOf,
  type MemoryHierarchy,
  makeMemoryGroup,
  type MemoryGroup,
} from './memory-groups.ts';
import { podMemoryLimits } from './pod-limits.ts';
import type { Child, ChildSpec } from '../tools/local-stack/processes/child.ts';
import { readProcessUsage } from './measure/process-usage.ts';

export interface MemoryLimits extends MemoryEnforcement {
  limitBytes: PerService<number>;
  /** Returns why a service ended by itself; undefined when its limit was not the reason. */
  explain: (name: string) => string | undefined;
}

const MIB = 2 ** 20;

/** Enforces the limits of the pods on services that run as local processes. `name` distinguishes runs. */
export function openMemoryLimits(name: string): MemoryLimits {
  const limitBytes = podMemoryLimits();
  const enforcement =
    limitByGroups(readHierarchy(), { name, limitBytes }) ?? limitByWatch(limitBytes);
  return {
    ...enforcement,
    limitBytes,
    explain(ended) {
      const service = SERVICES.find((each) => each === ended);
      if (service === undefined || !enforcement.hasEnded(service)) return undefined;
      const limitMiB = Math.round(limitBytes[service] / MIB);
      return [
        `The ${service} was killed because it took more than ${limitMiB} MiB of memory, the limit of its pod in`,
        `k8s/base/${service}.yaml (enforced by ${enforcement.enforcedBy}).`,
      ].join('\n');
    },
  };
}

function readHierarchy() {
  try {
    const [mountInfo, selfCgroup] = ['mountinfo', 'cgroup'].map((file) =>
      readFileSync(`/proc/self/${file}`, 'utf8'),
    );
    return memoryHierarchyOf(mountInfo ?? '', selfCgroup ?? '');
  } catch {
    return null;
  }
}

/** Kills a service that takes more memory than its limit. */
interface MemoryEnforcement {
  /** For the report: "a memory cgroup (version 1)". */
  enforcedBy: string;
  /** Returns how the service is to be started instead. */
  startOf: (service: UsualService, spec: ChildSpec) => ChildSpec;
  /** To be called when it has been started. */
  onStarted: (service: UsualService, child: Child) => void;
  /** Returns true when the limit was the reason that it ended. */
  hasEnded: (service: UsualService) => boolean;
  close: () => Promise<void>;
}

/** The limit of the group that tests whether limits are enforced. Node takes 45 MiB by itself. */
const TRIAL_BYTES = 96 * 2 ** 20;

interface GroupsSpec {
  name: string;
  limitBytes: PerService<number>;
}

/**
 * Creates one control group for each service, as for a pod. Returns null where groups cannot be created
 * or are not enforced.
 */
function limitByGroups(
  hierarchy: MemoryHierarchy | null,
  { name, limitBytes }: GroupsSpec,
): MemoryEnforcement | null {
  if (!hierarchy || !isUsable(hierarchy, `${name}-trial`)) return null;
  const groups = new Map<UsualService, MemoryGroup>();
  for (const service of SERVICES) {
    const spec = { name: `${name}-${service}`, limitBytes: limitBytes[service] };
    const group = makeMemoryGroup(hierarchy, spec);
    if (group) groups.set(service, group);
  }
  const close = async (): Promise<void> => {
    await Promise.all([...groups.values()].map((group) => group.remove()));
  };
  if (groups.size < SERVICES.length) {
    void close();
    return null;
  }
  return {
    enforcedBy: `a memory cgroup (version ${hierarchy.version})`,
    startOf(service, spec) {
      const group = groups.get(service);
      return group ? { ...spec, ...insideGroup(group, spec) } : spec;
    },
    onStarted: () => undefined,
    hasEnded: (service) => (groups.get(service)?.killed() ?? 0) > 0,
    close,
  };
}

function isUsable(hierarchy: MemoryHierarchy, name: string): boolean {
  const trial = makeMemoryGroup(hierarchy, { name, limitBytes: TRIAL_BYTES });
  if (!trial) return false;
  const isUsable = isLimitEnforced(trial, 2 * TRIAL_BYTES);
  void trial.remove();
  return isUsable;
}

const SHELL = '/bin/sh';
const ENTER_AND_RUN = 'echo $$ > "$0" && exec "$@"';

interface CommandLine {
  command: string;
  args: readonly string[];
}

/**
 * Returns a command that starts the same program inside the group, with the pid of the shell that enters it. Node
 * sizes its heap by the limit that it finds at its start, as in a pod, so it must not be moved there later.
 */
function insideGroup({ procsPath }: MemoryGroup, { command, args }: CommandLine) {
  return { command: SHELL, args: ['-c', ENTER_AND_RUN, procsPath, command, ...args] };
}

const PATIENCE_MS = 20_000;

/**
 * Returns whether a process that takes `bytes` is killed: some sandboxes accept a limit without
 * enforcing it.
 */
function isLimitEnforced(group: MemoryGroup, bytes: number): boolean {
  const hog = ['-e', `Buffer.alloc(${bytes}, 1)`];
  const { command, args } = insideGroup(group, { command: process.execPath, args: hog });
  const { signal } = spawnSync(command, args, { stdio: 'ignore', timeout: PATIENCE_MS });
  return signal === 'SIGKILL' && group.killed() > 0;
}

const EVERY_MS = 200;

/**
 * Polls the resident memory and kills a service that exceeds its limit. Misses a peak between two
 * polls.
 */
function limitByWatch(limitBytes: PerService<number>): MemoryEnforcement {
  const ended = new Set<UsualService>();
  return {
    enforcedBy: enforcedBy(),
    startOf: (_, spec) => spec,
    onStarted(service, { pid, exited }) {
      const check = (): void => {
        const residentBytes = readProcessUsage(pid)?.residentBytes ?? 0;
        if (residentBytes <= limitBytes[service]) return;
        ended.add(service);
        process.kill(pid, 'SIGKILL');
      };
      const timer = setInterval(check, EVERY_MS);
      // Afterwards the pid may belong to another program.
      void exited.then(() => {
        clearInterval(timer);
      });
    },
    hasEnded: (service) => ended.has(service),
    close: () => Promise.resolve(),
  };
}

function enforcedBy(): string {
  return readProcessUsage(process.pid) === undefined
    ? 'nothing, because memory cannot be read here'
    : `a watch on the resident memory, every ${EVERY_MS} ms`;
}
