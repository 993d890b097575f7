import { STUCK_CAUSES } from '@posthorn/domain/delivery/stuck-delivery.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, type Registry } from 'prom-client';

export interface StuckMetrics {
  moved: Counter<'found'>;
  /** The sweep has checked everything that there was to check. */
  onCompleted: () => void;
  /** The messages made before `atMs` (milliseconds since 1970) are checked; null when none is. */
  onChecked: (atMs: number | null) => void;
}

export function createStuckMetrics(registry: Registry, nowMs: () => number): StuckMetrics {
  const registers = [registry];
  const moved = new Counter<'found'>({
    name: 'posthorn_reconciled_deliveries_total',
    help: 'Stuck deliveries that the sweep published again or recorded as cancelled.',
    labelNames: ['found'],
    registers,
  });
  startAtZero(moved, 'found', STUCK_CAUSES);
  const lastCompleted = new Gauge({
    name: 'posthorn_reconcile_last_pass_timestamp_seconds',
    help: 'Time of the last completed sweep of stuck deliveries in this process; 0 when there was none.',
    registers,
  });
  let checkedToMs: number | null = null;
  new Gauge({
    name: 'posthorn_reconcile_position_age_seconds',
    help: 'Age of the newest message checked by the sweep of stuck deliveries, as last seen by this process; RECONCILE_AFTER and a few minutes when it keeps up, 0 when unknown. Take the lowest of all processes.',
    registers,
    collect() {
      const now = nowMs();
      this.set((now - (checkedToMs ?? now)) / 1_000);
    },
  });
  return {
    moved,
    onChecked: (atMs) => {
      checkedToMs = atMs;
    },
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
    help: 'Age of the oldest message that its gateway did not publish; 0 when there is none.',
    registers: [registry],
    collect() {
      const now = nowMs();
      this.set(Math.max(0, now - (oldestAtMs() ?? now)) / 1_000);
    },
  });
}
