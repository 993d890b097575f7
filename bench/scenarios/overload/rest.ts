import { setTimeout as wait } from 'node:timers/promises';
import { type Baseline, baselineOf, type Recovery, watchRecovery } from '../../measure/recovery.ts';
import type { Bench } from '../../scenario.ts';
import type { PerService } from '../../usage/per-service.ts';

const LOOK_EVERY_MS = 1_000;
const BASELINE_SECONDS = 10;

/** Measures the resident memory of each service at the end of this many seconds without load. */
export async function measureBaseline(bench: Bench, idleSeconds: number): Promise<Baseline> {
  bench.log(`Idle for ${idleSeconds} s, to measure the memory at the start`);
  const startedAtMs = performance.now();
  await pause(bench, idleSeconds * 1_000);
  const fromMs = Math.max(startedAtMs, performance.now() - BASELINE_SECONDS * 1_000);
  return baselineOf(bench.usage.samples, fromMs);
}

export interface RestRun {
  /** How long the rest took. */
  seconds: number;
  recoveries: PerService<Recovery | null>;
}

/** Waits without load until the memory of every service has recovered, or the time is over. */
export async function restUntilRecovered(
  bench: Bench,
  baseline: Baseline,
  maxSeconds: number,
): Promise<RestRun> {
  bench.log(`Idle for ${maxSeconds} s at most, until the memory is within 20 % of the start`);
  const startedAtMs = performance.now();
  const watch = watchRecovery(baseline);
  for (;;) {
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
    const isRecovered = watch.look(bench.usage.read(), seconds);
    if (isRecovered || seconds >= maxSeconds || bench.signal.aborted) {
      return { seconds, recoveries: watch.result() };
    }
    await pause(bench, LOOK_EVERY_MS);
  }
}

async function pause({ signal }: Bench, ms: number): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}
