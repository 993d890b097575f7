import { isOutage } from '@posthorn/platform/async/is-outage.ts';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { Gauge, type Registry } from 'prom-client';

export interface OutageWatch {
  /** Returns one that retries like the given one, and notes which steps fail. */
  watch: (keepTrying: KeepTrying) => KeepTrying;
  /** True while a step fails because a store or Kafka is away. */
  isOutage: () => boolean;
}

/**
 * Notes the steps that fail by an outage. A primary without a majority still answers reads, so the
 * connection does not show the outage.
 */
export function createOutageWatch(registry: Registry): OutageWatch {
  /** Purpose → true while its last try has failed. Purposes are few and fixed. */
  const failing = new Map<string, boolean>();
  new Gauge({
    name: 'posthorn_failing_steps',
    help: '1 while the step fails because a store or Kafka is away, and is repeated; 0 while it succeeds.',
    labelNames: ['step'],
    registers: [registry],
    collect() {
      for (const [step, isFailing] of failing) this.set({ step }, isFailing ? 1 : 0);
    },
  });
  return {
    watch: (keepTrying) => (purpose, step, fieldsOf) =>
      keepTrying(purpose, () => runAndNote(failing, purpose, step), fieldsOf),
    isOutage: () => [...failing.values()].includes(true),
  };
}

async function runAndNote<T>(
  failing: Map<string, boolean>,
  purpose: string,
  step: () => Promise<T>,
): Promise<T> {
  try {
    const result = await step();
    failing.set(purpose, false);
    return result;
  } catch (error) {
    failing.set(purpose, isOutage(error));
    throw error;
  }
}
