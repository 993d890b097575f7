import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const FAILURES = ['setup', 'not_accepted', 'wrong_signature', 'unreadable'] as const;

/**
 * `setup`: its webhook could not be found or created. `not_accepted`: the gateway did not take a message. The others
 * are about what arrived.
 */
export type CanaryFailure = (typeof FAILURES)[number];

export interface CanaryMetrics {
  countFailure: (reason: CanaryFailure) => void;
  /** A message that was sent at `sentAtMs` (since 1970) has arrived now. */
  noteArrival: (sentAtMs: number) => void;
}

export function createCanaryMetrics(registry: Registry, nowMs: () => number): CanaryMetrics {
  const registers = [registry];
  const failures = new Counter({
    name: 'posthorn_canary_failures_total',
    help: 'Canary messages that failed, by reason.',
    labelNames: ['reason'],
    registers,
  });
  // The series exist from the start, so that the first increment is visible as a rise.
  for (const reason of FAILURES) failures.inc({ reason }, 0);
  const duration = new Histogram({
    name: 'posthorn_canary_duration_seconds',
    help: 'Time from the sending of a canary message to its arrival.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers,
  });
  // Nothing has arrived yet: a canary that never works gets old too.
  let newestMs = nowMs();
  new Gauge({
    name: 'posthorn_canary_age_seconds',
    help: 'Time since the newest canary message that arrived at this process was sent. Take the lowest of all processes.',
    registers,
    collect() {
      this.set(Math.max(0, nowMs() - newestMs) / 1_000);
    },
  });
  return {
    countFailure: (reason) => {
      failures.inc({ reason });
    },
    noteArrival: (sentAtMs) => {
      newestMs = Math.max(newestMs, sentAtMs);
      duration.observe(Math.max(0, nowMs() - sentAtMs) / 1_000);
    },
  };
}
