import type { Child } from '../tools/local-stack/processes/child.ts';
import { SERVICES, type UsualService } from '../tools/local-stack/supervisor/services.ts';
import { readProcessUsage } from './measure/process-usage.ts';
import { podMemoryLimits } from './pod-limits.ts';

/** The memory limits of the pods, for services that run as local processes. */
export type MemoryLimits = ReturnType<typeof openMemoryLimits>;

const EVERY_MS = 200;
const MIB = 2 ** 20;

/**
 * Reads the resident memory of each service again and again, and kills one that exceeds the limit of its pod. Misses a peak
 * between two readings. A control group would change nothing else: the flags of Node fix the size of its heap.
 */
export function openMemoryLimits() {
  const limitBytes = podMemoryLimits();
  const ended = new Set<UsualService>();
  return {
    limitBytes,
    /** For the report. */
    enforcedBy:
      readProcessUsage(process.pid) === undefined
        ? 'nothing, because memory cannot be read here'
        : `a watch on the resident memory, every ${EVERY_MS} ms`,
    /** To be called when a service has been started. */
    onStarted(service: UsualService, { pid, exited }: Child): void {
      const timer = setInterval(() => {
        const residentBytes = readProcessUsage(pid)?.residentBytes ?? 0;
        if (residentBytes <= limitBytes[service]) return;
        ended.add(service);
        process.kill(pid, 'SIGKILL');
      }, EVERY_MS);
      // Afterwards the pid may belong to another program.
      void exited.then(() => {
        clearInterval(timer);
      });
    },
    /** Returns why a service ended by itself; undefined when its limit was not the reason. */
    explain(name: string): string | undefined {
      const service = SERVICES.find((each) => each === name);
      if (service === undefined || !ended.has(service)) return undefined;
      const limit = `${Math.round(limitBytes[service] / MIB)} MiB of memory`;
      return `The ${service} was killed: it took more than ${limit}, the limit of its pod in k8s/base/${service}.yaml.`;
    },
  };
}
