import { readProcessUsage } from '../../bench/measure/process-usage.ts';
import { type Plan, usualPlan } from '../load/plan.ts';
import type { Round } from '../round.ts';

const SAMPLE_MS = 5_000;
const SLOW_EVERY = 100;
const SLOW_MS = 3_000;
const MAX_MIB_PER_MINUTE = 1;
/** The heap grows to its working size first. */
const WARM_UP_SHARE = 0.4;
const MIB = 2 ** 20;
const MINUTE_MS = 60_000;

/** One message in a hundred is answered slowly. */
const someSlow: Plan = {
  ...usualPlan,
  replyTo: (n, endpoint, nth) => {
    const reply = usualPlan.replyTo(n, endpoint, nth);
    return n % SLOW_EVERY === 0 ? { ...reply, afterMs: SLOW_MS } : reply;
  },
};

interface Sample {
  atMs: number;
  bytes: number;
}

export const SOAK: Round = {
  name: 'F15',
  summary: 'load for half an hour, one answer in a hundred takes 3 s',
  promise: `0 lost, 0 duplicates, the memory of no service grows by ${MAX_MIB_PER_MINUTE} MiB per minute or more`,
  seconds: [1_800],
  plan: someSlow,
  recoverWithinMs: null,
  async inject({ fleet, pause, seconds, say }) {
    const samples = new Map<string, Sample[]>();
    const endsAtMs = Date.now() + seconds * 1_000;
    const countsFromMs = Date.now() + seconds * 1_000 * WARM_UP_SHARE;
    while (Date.now() < endsAtMs) {
      await pause(SAMPLE_MS);
      if (Date.now() < countsFromMs) continue;
      for (const member of fleet.running()) {
        const bytes = readProcessUsage(fleet.pidOf(member))?.residentBytes;
        if (bytes === undefined) continue;
        samples.set(member, [...(samples.get(member) ?? []), { atMs: Date.now(), bytes }]);
      }
    }
    const slopes = [...samples].map(([member, of]) => [member, mibPerMinute(of)] as const);
    say(slopes.map(([member, slope]) => `${member} ${slope.toFixed(2)} MiB/min`).join(', '));
    const grown = slopes.filter(([, slope]) => slope >= MAX_MIB_PER_MINUTE);
    const findings = grown.map(
      ([member, slope]) => `${member} grows by ${slope.toFixed(2)} MiB per minute`,
    );
    return { endedAtMs: Date.now(), findings };
  },
};

/** The slope of a straight line through the samples (least squares). */
export function mibPerMinute(samples: readonly Sample[]): number {
  const meanOf = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanMs = meanOf(samples.map(({ atMs }) => atMs));
  const meanBytes = meanOf(samples.map(({ bytes }) => bytes));
  let [product, square] = [0, 0];
  for (const { atMs, bytes } of samples) {
    product += (atMs - meanMs) * (bytes - meanBytes);
    square += (atMs - meanMs) ** 2;
  }
  return square === 0 ? 0 : ((product / square) * MINUTE_MS) / MIB;
}
