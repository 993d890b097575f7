import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The wall clock of services, which can be set while they run. */
export interface ServiceClock {
  /** Settings that make a service use it. */
  settings: Record<string, string>;
  /** Returns its time, in milliseconds since 1970. */
  nowMs: () => number;
  /** Sets it for all services that use it, within some hundredths of a second. */
  setTo: (nowMs: number) => void;
  setAheadBy: (ms: number) => void;
  remove: () => void;
}

const PRELOAD = pathToFileURL(join(import.meta.dirname, 'moved-clock.ts'));

/** Creates a clock that shows the real time until it is set: that of services, or of services and their database. */
export function createServiceClock(
  of: 'services' | 'services and database' = 'services',
): ServiceClock {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-clock-'));
  const path = join(folder, 'ahead-ms');
  let aheadMs = 0;
  const setAheadBy = (ms: number): void => {
    aheadMs = ms;
    // A reader must never see half of it.
    writeFileSync(`${path}.new`, String(ms));
    renameSync(`${path}.new`, path);
  };
  setAheadBy(0);
  return {
    settings: {
      NODE_OPTIONS: `--import=${PRELOAD.href}`,
      MOVED_CLOCK_FILE: path,
      MOVED_CLOCK_OF_DATABASE: String(of === 'services and database'),
    },
    nowMs: () => Date.now() + aheadMs,
    setTo: (nowMs) => {
      setAheadBy(nowMs - Date.now());
    },
    setAheadBy,
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
