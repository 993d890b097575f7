import type { EgressRefusal } from '@posthorn/domain/egress/egress-rules.ts';
import { Counter, type Registry } from 'prom-client';

export interface SenderMetrics {
  onRefused: (reason: EgressRefusal) => void;
  onSent: (isReused: boolean) => void;
}

export function createSenderMetrics(registry: Registry): SenderMetrics {
  const registers = [registry];
  const blocked = new Counter({
    name: 'posthorn_egress_blocked_total',
    help: 'Connections refused by the egress rules, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const connections = new Counter({
    name: 'posthorn_outbound_connections_total',
    help: 'Requests sent to endpoints, by whether they reused an open connection.',
    labelNames: ['reused'],
    registers,
  });
  return {
    onRefused(reason) {
      blocked.inc({ reason });
    },
    onSent(isReused) {
      connections.inc({ reused: String(isReused) });
    },
  };
}
