import { readFileSync } from 'node:fs';
import { SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import type { PerService } from '../stack/per-service.ts';
import { holdByGroups } from './hold-by-groups.ts';
import { holdByWatch } from './hold-by-watch.ts';
import type { MemoryHold } from './memory-hold.ts';
import { memoryHierarchyOf } from './memory-hierarchy.ts';
import { podMemoryLimits } from './pod-limits.ts';

export interface MemoryLimits extends MemoryHold {
  limitBytes: PerService<number>;
  /** Told when a service has ended by itself; undefined when its limit was not the reason. */
  explain: (name: string) => string | undefined;
}

const MIB = 2 ** 20;

/** The limits of the pods, for services that run as processes of this machine. `name` keeps runs apart. */
export function openMemoryLimits(name: string): MemoryLimits {
  const limitBytes = podMemoryLimits();
  const hold = holdByGroups(readHierarchy(), { name, limitBytes }) ?? holdByWatch(limitBytes);
  return {
    ...hold,
    limitBytes,
    explain(ended) {
      const service = SERVICES.find((each) => each === ended);
      if (service === undefined || !hold.hasEnded(service)) return undefined;
      const limitMiB = Math.round(limitBytes[service] / MIB);
      return [
        `The ${service} was ended because it took more than ${limitMiB} MiB of memory, the limit of its pod in`,
        `k8s/base/${service}.yaml (held by ${hold.heldBy}).`,
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
