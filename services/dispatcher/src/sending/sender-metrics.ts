import type { EgressRefusal } from '@posthorn/domain/egress/egress-rules.ts';
import { Counter, type Registry } from 'prom-client';
import { TUNNEL_RESULTS, type TunnelResult } from './connect/proxy/judge-answer.ts';

export interface SenderMetrics {
  onRefused: (reason: EgressRefusal) => void;
  onSent: (isReused: boolean) => void;
  onTunnel: (result: TunnelResult) => void;
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
  const tunnels = new Counter({
    name: 'posthorn_proxy_tunnels_total',
    help: 'Connections asked of the egress proxy, by result; each fault deserves an alert, since deliveries wait for the proxy.',
    labelNames: ['result'],
    registers,
  });
  for (const result of TUNNEL_RESULTS) tunnels.inc({ result }, 0);
  return {
    onRefused(reason) {
      blocked.inc({ reason });
    },
    onSent(isReused) {
      connections.inc({ reused: String(isReused) });
    },
    onTunnel(result) {
      tunnels.inc({ result });
    },
  };
}
