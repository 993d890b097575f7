import { STUCK_CAUSES } from '@posthorn/domain/delivery-lifecycle/stuck-delivery.ts';
import { Counter, Gauge, type Registry } from 'prom-client';

export interface StuckMetrics {
  moved: Counter<'found'>;
  /** The sweep has checked everything that there was to check. */
  onCompleted: () => void;
}

export function createStuckMetrics(registry: Registry): StuckMetrics {
  const registers = [registry];
  const moved = new Counter<'found'>({
    name: 'posthorn_reconciled_deliveries_total',
    help: 'Stuck deliveries that were moved on, because no record in Kafka did.',
    labelNames: ['found'],
    registers,
  });
  // The series exist from the start, so that the first increment is visible as a rise.
  for (const found of STUCK_CAUSES) moved.inc({ found }, 0);
  const lastCompleted = new Gauge({
    name: 'posthorn_reconcile_last_pass_timestamp_seconds',
    help: 'When this process last completed a sweep of stuck deliveries; 0 when it never has.',
    registers,
  });
  return {
    moved,
    onCompleted: () => {
      lastCompleted.setToCurrentTime();
    },
  };
}

/**
 * `oldestAtMs` returns when the oldest message that the sweep knows to be unpublished was accepted,
 * in milliseconds since 1970; null when there is none.
 */
export function showUnpublished(
  registry: Registry,
  oldestAtMs: () => number | null,
  nowMs: () => number,
): void {
  new Gauge({
    name: 'posthorn_unpublished_oldest_seconds',
    help: 'How long the oldest message that its gateway did not publish has waited; 0 when there is none.',
    registers: [registry],
    collect() {
      const now = nowMs();
      this.set(Math.max(0, now - (oldestAtMs() ?? now)) / 1_000);
    },
  });
}
