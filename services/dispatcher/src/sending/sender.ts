import { EGRESS_REFUSALS, type EgressRefusal } from '@posthorn/domain/egress.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import { MAX_TIMEOUT_SECONDS } from '@posthorn/domain/webhook-fields.ts';
import { bytesOfMib, type MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { egressPolicyOf } from '@posthorn/platform/security/egress.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { startAtZero, VERSION } from '@posthorn/platform/service/metrics.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { DispatcherConfig } from '../config.ts';
import {
  type AccessTokens,
  createAccessTokens,
  createRequestToken,
  createTokenPace,
  type RequestToken,
  TOKEN_RESULTS,
  type TokenResult,
} from './access-tokens.ts';
import { createIdleConnections, createSpreadAgents, createTlsClients } from './agents.ts';
import { openEgressProxy, TUNNEL_RESULTS, type TunnelResult } from './egress-proxy.ts';
import { createHostResolver } from './resolve-host.ts';
import { createDeadlineSweep, createSendWebhook, type SendWebhook } from './send-webhook.ts';

const MAX_IDLE_CONNECTIONS = 2_048;

export interface Sender {
  send: SendWebhook;
  tokens: AccessTokens;
}

/** Opens what requests need: host look-ups, connections, deadlines, access tokens and their metrics. */
export function openSender(
  {
    config,
    lifecycle,
    registry,
    logger,
  }: Pick<ServiceContext<DispatcherConfig>, 'config' | 'lifecycle' | 'registry' | 'logger'>,
  budgets: MemoryBudgets,
): Sender {
  warnOfOpenings(config, logger);
  const timeoutMs = config.DELIVERY_TIMEOUT_MS;
  const metrics = createSenderMetrics(registry);
  const idle = createIdleConnections({ maxIdle: MAX_IDLE_CONNECTIONS, onSent: metrics.onSent });
  watchSockets(registry, idle.count);
  const guard = {
    proxy: openEgressProxy(config, metrics.onTunnel),
    policy: egressPolicyOf(config),
    // Webhooks with other timeouts share the connections: the deadline sweep ends each attempt at its own.
    connectTimeoutMs: Math.max(timeoutMs, MAX_TIMEOUT_SECONDS * 1_000),
    hosts: createHostResolver(),
    onRefused: metrics.onRefused,
    onOpened: idle.add,
  };
  const agents = createSpreadAgents(guard);
  const tlsClientBytes = memoryShare('dispatcher', 'tls_clients', config.MEMORY_MIB);
  const tlsClients = createTlsClients(guard, tlsClientBytes);
  budgets.add('tls_clients', tlsClientBytes, tlsClients.usedBytes);
  const deadlines = createDeadlineSweep(monotonicClockMs);
  lifecycle.onStop('sender', async () => {
    deadlines.stop();
    idle.stop();
    await Promise.all([agents.destroy(), tlsClients.destroy()]);
  });
  const userAgent = `Posthorn/${VERSION}`;
  const exchange = { deadlines, timeoutMs, monotonicMs: monotonicClockMs, userAgent };
  const onResult = metrics.onTokenRequest;
  const requestToken = createRequestToken({ ...exchange, agentOf: agents.agentOf, onResult });
  const send = createSendWebhook({
    ...exchange,
    agentOf: ({ webhook, tls }) => (tls ? tlsClients.agentOf(tls) : agents.agentOf(webhook.id)),
    wallClockMs: systemClockMs,
  });
  return { send, tokens: openTokens(config, requestToken, budgets) };
}

function openTokens(
  config: DispatcherConfig,
  requestToken: RequestToken,
  budgets: MemoryBudgets,
): AccessTokens {
  const cacheBytes = memoryShare('dispatcher', 'token_cache', config.MEMORY_MIB);
  const perSecond = config.HOST_ATTEMPTS_PER_SECOND;
  const tokens = createAccessTokens({
    requestToken,
    pace: createTokenPace({ perSecond, monotonicMs: monotonicClockMs }),
    cacheBytes,
    firstRetryMs: requiredAt(config.RETRY_DELAYS, 0, 'retry delay'),
    nowMs: systemClockMs,
  });
  budgets.add('token_cache', cacheBytes, tokens.usedBytes);
  return tokens;
}

function warnOfOpenings(config: DispatcherConfig, logger: Logger): void {
  if (config.EGRESS_ALLOW_CIDRS) {
    logger.warn('EGRESS_ALLOW_CIDRS is set: deliveries may go to private addresses');
  }
  if (config.EGRESS_PROXY_URL && config.EGRESS_PROXY_TARGET === 'name') {
    logger.warn(
      'EGRESS_PROXY_TARGET is name: only the proxy keeps deliveries from private addresses',
    );
  }
}

interface SenderMetrics {
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
