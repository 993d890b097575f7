import type { ServiceName } from '../../tools/local-stack/supervisor/services.ts';
import type { PerService } from '../stack/per-service.ts';
import { readProcessUsage } from '../stack/process-usage.ts';
import type { MemoryHold } from './memory-hold.ts';

const EVERY_MS = 200;

/** Looks at the resident memory and ends who is beyond its limit; a peak between two looks goes unseen. */
export function holdByWatch(limitBytes: PerService<number>): MemoryHold {
  const ended = new Set<ServiceName>();
  return {
    heldBy: heldBy(),
    startOf: (_, spec) => spec,
    onStarted(service, { pid, exited }) {
      const look = (): void => {
        const residentBytes = readProcessUsage(pid)?.residentBytes ?? 0;
        if (residentBytes <= limitBytes[service]) return;
        ended.add(service);
        process.kill(pid, 'SIGKILL');
      };
      const timer = setInterval(look, EVERY_MS);
      // Its pid may be another program's afterwards.
      void exited.then(() => {
        clearInterval(timer);
      });
    },
    hasEnded: (service) => ended.has(service),
    close: () => Promise.resolve(),
  };
}

function heldBy(): string {
  return readProcessUsage(process.pid) === undefined
    ? 'nothing, since memory cannot be read here'
    : `a watch on the resident memory, every ${EVERY_MS} ms`;
}
