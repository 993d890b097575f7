import type { ServiceName } from '../../tools/local-stack/supervisor/services.ts';
import type { PerService } from '../usage/per-service.ts';
import { readProcessUsage } from '../usage/process-usage.ts';
import type { MemoryEnforcement } from './memory-enforcement.ts';

const EVERY_MS = 200;

/**
 * Polls the resident memory and kills a service that exceeds its limit. Misses a peak between two
 * polls.
 */
export function limitByWatch(limitBytes: PerService<number>): MemoryEnforcement {
  const ended = new Set<ServiceName>();
  return {
    enforcedBy: enforcedBy(),
    startOf: (_, spec) => spec,
    onStarted(service, { pid, exited }) {
      const look = (): void => {
        const residentBytes = readProcessUsage(pid)?.residentBytes ?? 0;
        if (residentBytes <= limitBytes[service]) return;
        ended.add(service);
        process.kill(pid, 'SIGKILL');
      };
      const timer = setInterval(look, EVERY_MS);
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
