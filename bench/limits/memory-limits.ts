import { readFileSync } from 'node:fs';
import { type ServiceName, SERVICES } from '../../deploy/local/supervisor/services.ts';
import type { Child, ChildSpec } from '../../deploy/local/processes/child.ts';
import type { PerService } from '../stack/per-service.ts';
import { holdByGroups } from './hold-by-groups.ts';
import { holdByWatch } from './hold-by-watch.ts';
import { memoryHierarchyOf } from './memory-hierarchy.ts';
import { podMemoryLimits } from './pod-limits.ts';

/** What ends a service that takes more memory than its limit. */
export interface MemoryHold {
  /** For the report: "a memory cgroup (version 1)". */
  heldBy: string;
  /** How the service is started instead. */
  startOf: (service: ServiceName, spec: ChildSpec) => ChildSpec;
  /** It has been started. */
  onStarted: (service: ServiceName, child: Child) => void;
  /** True when this is what ended it. */
  hasEnded: (service: ServiceName) => boolean;
  close: () => Promise<void>;
}

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
