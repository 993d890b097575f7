import { type ServiceName, SERVICES } from '../../tools/local-stack/supervisor/services.ts';
import type { PerService } from '../usage/per-service.ts';
import { insideGroup, isLimitEnforced } from './enter-group.ts';
import { makeMemoryGroup, type MemoryGroup } from './memory-group.ts';
import type { MemoryHierarchy } from './memory-hierarchy.ts';
import type { MemoryEnforcement } from './memory-enforcement.ts';

/** The limit of the group that tests whether limits are enforced. Node takes 45 MiB by itself. */
const TRIAL_BYTES = 96 * 2 ** 20;

export interface GroupsSpec {
  name: string;
  limitBytes: PerService<number>;
}

/**
 * Creates one control group for each service, as for a pod. Returns null where groups cannot be created
 * or are not enforced.
 */
export function limitByGroups(
  hierarchy: MemoryHierarchy | null,
  { name, limitBytes }: GroupsSpec,
): MemoryEnforcement | null {
  if (!hierarchy || !isUsable(hierarchy, `${name}-trial`)) return null;
  const groups = new Map<ServiceName, MemoryGroup>();
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
