import type { RunningService } from './posthorn.ts';
import { metricOf } from './traffic.ts';

/** Those of the image (deploy/Dockerfile): without bounds, V8 keeps more garbage. */
export const MEMORY_FLAGS = { NODE_OPTIONS: '--max-semi-space-size=16 --max-old-space-size=384' };

export interface WatchedMemory {
  /** Stops watching; returns by how much the resident memory exceeded that at the start, at its most. */
  grownMib: () => Promise<number>;
}

const EVERY_MS = 100;
const MIB = 1_048_576;

/** Watches the resident memory of a service from now on. */
export async function watchMemory(service: RunningService): Promise<WatchedMemory> {
  const read = (): Promise<number> => metricOf(service, 'process_resident_memory_bytes');
  const before = await read();
  let most = before;
  const look = async (): Promise<void> => {
    most = Math.max(most, await read());
  };
  const timer = setInterval(() => void look().catch(() => undefined), EVERY_MS);
  return {
    async grownMib() {
      clearInterval(timer);
      await look();
      const grown = (most - before) / MIB;
      console.log(
        `${service.name} grew by ${grown.toFixed(0)} MiB from ${(before / MIB).toFixed(0)}`,
      );
      return grown;
    },
  };
}
