import { readFileSync } from 'node:fs';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import type { PerService } from '../usage/per-service.ts';
import { limitByGroups } from './limit-by-groups.ts';
import { limitByWatch } from './limit-by-watch.ts';
import type { MemoryEnforcement } from './memory-enforcement.ts';
import { memoryHierarchyOf } from './memory-hierarchy.ts';
import { podMemoryLimits } from './pod-limits.ts';

export interface MemoryLimits extends MemoryEnforcement {
  limitBytes: PerService<number>;
  /** Returns why a service ended by itself; undefined when its limit was not the reason. */
  explain: (name: string) => string | undefined;
}

const MIB = 2 ** 20;

/** Enforces the limits of the pods on services that run as local processes. `name` distinguishes runs. */
export function openMemoryLimits(name: string): MemoryLimits {
  const limitBytes = podMemoryLimits();
  const hold = limitByGroups(readHierarchy(), { name, limitBytes }) ?? limitByWatch(limitBytes);
  return {
    ...hold,
    limitBytes,
    explain(ended) {
      const service = SERVICES.find((each) => each === ended);
      if (service === undefined || !hold.hasEnded(service)) return undefined;
      const limitMiB = Math.round(limitBytes[service] / MIB);
      return [
        `The ${service} was killed because it took more than ${limitMiB} MiB of memory, the limit of its pod in`,
        `k8s/base/${service}.yaml (enforced by ${hold.enforcedBy}).`,
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
