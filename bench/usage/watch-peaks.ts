import { type PerService, perService } from './per-service.ts';
import type { UsageWatch } from './watch-usage.ts';

export interface PeakWatch {
  /**
   * Returns the highest resident memory of each service since the last call, in bytes; null where it
   * cannot be read.
   */
  take: () => PerService<number | null>;
  stop: () => void;
}

const EVERY_MS = 200;

export function watchPeaks({ read }: Pick<UsageWatch, 'read'>): PeakWatch {
  let peaks = perService<number | null>(() => null);
  const look = (): void => {
    const usage = read();
    peaks = perService((service) => highest(peaks[service], usage[service]?.residentBytes));
  };
  const timer = setInterval(look, EVERY_MS);
  return {
    take() {
      look();
      const taken = peaks;
      peaks = perService<number | null>(() => null);
      return taken;
    },
    stop: () => {
      clearInterval(timer);
    },
  };
}

function highest(before: number | null, now: number | undefined): number | null {
  if (before === null || now === undefined) return now ?? before;
  return Math.max(before, now);
}
