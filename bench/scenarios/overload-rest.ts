import { setTimeout as wait } from 'node:timers/promises';
import { type Baseline, baselineOf, type Comeback, watchComeback } from '../measure/comeback.ts';
import type { Bench } from '../scenario.ts';
import type { PerService } from '../stack/per-service.ts';

const LOOK_EVERY_MS = 1_000;
const BASELINE_SECONDS = 10;

/** What each service holds at the end of so many seconds without any load. */
export async function measureBaseline(bench: Bench, idleSeconds: number): Promise<Baseline> {
  bench.log(`Idle for ${idleSeconds} s, for the memory to begin with`);
  const startedAtMs = performance.now();
  await pause(bench, idleSeconds * 1_000);
  const fromMs = Math.max(startedAtMs, performance.now() - BASELINE_SECONDS * 1_000);
  return baselineOf(bench.usage.samples, fromMs);
}

export interface RestRun {
  /** How long was waited. */
  seconds: number;
  comebacks: PerService<Comeback | null>;
}

/** Waits without any load until every service is back, or until the time is over. */
export async function restUntilBack(
  bench: Bench,
  baseline: Baseline,
  maxSeconds: number,
): Promise<RestRun> {
  bench.log(`Idle for ${maxSeconds} s at most, until the memory is back within 20 %`);
  const startedAtMs = performance.now();
  const watch = watchComeback(baseline);
  for (;;) {
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const isBack = watch.look(bench.usage.read(), seconds);
    if (isBack || seconds >= maxSeconds || bench.signal.aborted) {
      return { seconds, comebacks: watch.result() };
    }
    await pause(bench, LOOK_EVERY_MS);
  }
}

async function pause({ signal }: Bench, ms: number): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}
