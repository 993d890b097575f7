import { EGRESS_REFUSALS, type EgressRefusal } from '@posthorn/domain/egress/egress-rules.ts';
import { startAtZero } from '@posthorn/platform/service/metrics.ts';
import { Counter, Gauge, type Registry } from 'prom-client';
import { TUNNEL_RESULTS, type TunnelResult } from './connect/proxy/judge-answer.ts';
import { TOKEN_RESULTS, type TokenResult } from './tokens/request-token.ts';

export interface SenderMetrics {
  onRefused: (reason: EgressRefusal) => void;
  onSent: (isReused: boolean) => void;
  onTunnel: (result: TunnelResult) => void;
  onTokenRequest: (result: TokenResult) => void;
}

export function createSenderMetrics(registry: Registry): SenderMetrics {
  const registers = [registry];
  const blocked = new Counter({
    name: 'posthorn_egress_blocked_total',
    help: 'Connections refused by the egress rules, by reason.',
    labelNames: ['reason'],
    registers,
  });
  startAtZero(blocked, 'reason', EGRESS_REFUSALS);
  const connections = new Counter({
    name: 'posthorn_outbound_connections_total',
    help: 'Requests sent to endpoints, by whether they reused an open connection.',
    labelNames: ['reused'],
    registers,
  });
  startAtZero(connections, 'reused', ['true', 'false']);
  const tunnels = new Counter({
    name: 'posthorn_proxy_tunnels_total',
    help: 'Connections asked of the egress proxy, by result; each fault deserves an alert, since deliveries wait for the proxy.',
    labelNames: ['result'],
    registers,
  });
  startAtZero(tunnels, 'result', TUNNEL_RESULTS);
  const tokenRequests = new Counter({
    name: 'posthorn_token_requests_total',
    help: 'Requests for OAuth 2.0 access tokens, by result.',
    labelNames: ['result'],
    registers,
  });
  startAtZero(tokenRequests, 'result', TOKEN_RESULTS);
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
    onTokenRequest(result) {
      tokenRequests.inc({ result });
    },
  };
}

/** Shows the connections to endpoints and token servers, at each scrape. */
export function watchSockets(
  registry: Registry,
  count: () => { open: number; idle: number },
): void {
  new Gauge({
    name: 'posthorn_outbound_sockets',
    help: 'Open connections to endpoints and token servers: busy with a request, or idle.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      const { open, idle } = count();
      this.set({ state: 'busy' }, open - idle);
      this.set({ state: 'idle' }, idle);
    },
  });
}
