import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../../test/support/time/eventually.ts';
import type { Scene } from './scene.ts';
import type { StepResult } from './step-result.ts';

const STOPPED_FOR_MS = 300_000;
const FIRES_WITHIN_MS = 120_000;
const ABOUT_STOPPED_DISPATCHERS = ['PosthornServiceAbsent'];

/** Stops the dispatcher for five minutes, and sees that its alerts fire within two. */
export async function stopDispatcher(
  { posthorn, prometheus }: Scene,
  progress: (line: string) => void,
): Promise<StepResult> {
  const stoppedAtMs = performance.now();
  await posthorn.dispatcher.stop();
  const sinceMs = (): number => performance.now() - stoppedAtMs;
  const seen = new Map<string, number>();
  const haveFired = async (): Promise<boolean> => {
    for (const name of await prometheus.firingAlerts()) {
      if (seen.has(name)) continue;
      const seconds = Math.round(sinceMs() / 1_000);
      seen.set(name, seconds);
      progress(`${name} fires ${seconds} s after the dispatcher was told to stop`);
    }
    return ABOUT_STOPPED_DISPATCHERS.every((name) => seen.has(name));
  };
  await eventually('the alerts', haveFired, FIRES_WITHIN_MS - sinceMs()).catch(() => undefined);
  await pause(STOPPED_FOR_MS - sinceMs());
  const missing = ABOUT_STOPPED_DISPATCHERS.filter((name) => !seen.has(name));
  const times = ABOUT_STOPPED_DISPATCHERS.map((name) => `${name} after ${seen.get(name) ?? '?'} s`);
  return {
    saw: times.join(', '),
    problem:
      missing.length === 0
        ? null
        : `${FIRES_WITHIN_MS / 1_000} s after the stop, these do not fire: ${missing.join(', ')}`,
  };
}
