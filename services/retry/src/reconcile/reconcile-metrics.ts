import { Counter, Gauge, type Registry } from 'prom-client';
import { FINDINGS, type Finding } from './reconcile-rules.ts';

export interface ReconcileMetrics {
  reconciled: Counter<'found'>;
  completed: () => void;
}

export function createReconcileMetrics(registry: Registry): ReconcileMetrics {
  const registers = [registry];
  const reconciled = new Counter<'found'>({
    name: 'posthorn_reconciled_deliveries_total',
    help: 'Deliveries that stood still with no record in Kafka to move them, and were driven again.',
    labelNames: ['found'],
    registers,
  });
  // There from the start, so that the first finding is seen as a rise.
  for (const found of FINDINGS satisfies readonly Finding[]) reconciled.inc({ found }, 0);
  const lastPass = new Gauge({
    name: 'posthorn_reconcile_last_pass_timestamp_seconds',
    help: 'When this process last came to the end of what there was to check; 0 when it never has.',
    registers,
  });
  return {
    reconciled,
    completed: () => {
      lastPass.setToCurrentTime();
    },
  };
}

/** `oldestAtMs`: when the oldest message known to be unpublished was accepted; null when none is. */
export function showUnpublished(
  registry: Registry,
  oldestAtMs: () => number | null,
  nowMs: () => number,
): void {
  new Gauge({
    name: 'posthorn_unpublished_oldest_seconds',
    help: 'How long the oldest message has waited that a gateway left behind; 0 when none has.',
    registers: [registry],
    collect() {
      const now = nowMs();
      this.set(Math.max(0, now - (oldestAtMs() ?? now)) / 1_000);
    },
  });
}
