import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { MAX_TIMEOUT_SECONDS } from '@posthorn/domain/webhook-fields.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { EgressRefusal } from '@posthorn/domain/egress.ts';
import { type MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { egressPolicyOf } from '@posthorn/platform/security/egress.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { DispatcherConfig } from '../config.ts';
import {
  type AccessTokens,
  createAccessTokens,
  createRequestToken,
  createTokenPace,
  type TokenResult,
} from './access-tokens.ts';
import { createIdleConnections, createSpreadAgents, createTlsClients } from './connect/agents.ts';
import { createEgressProxy, type TunnelResult } from './connect/egress-proxy.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import { createDeadlineSweep, createSendWebhook, type SendWebhook } from './send-webhook.ts';

export interface Sender {
  send: SendWebhook;
  tokens: AccessTokens;
  /** Open connections to endpoints and token servers, and how many of them carry no request. */
  connections: () => { open: number; idle: number };
  stop: () => Promise<void>;
}

export interface SenderMetrics {
  onRefused: (reason: EgressRefusal) => void;
  /** Called for each request. `isReused` is false for the first on its connection. */
  onSent: (isReused: boolean) => void;
  onTunnel: (result: TunnelResult) => void;
  onTokenRequest: (result: TokenResult) => void;
}

interface SenderDeps {
  metrics: SenderMetrics;
  budgets: MemoryBudgets;
  logger: Pick<Logger, 'warn'>;
}

const MAX_IDLE_CONNECTIONS = 2_048;

/** Sends requests: host look-ups, connections, deadlines and access tokens together. */
export function createSender(
  config: DispatcherConfig,
  { metrics, budgets, logger }: SenderDeps,
): Sender {
  warnOfOpenings(config, logger);
  const timeoutMs = config.DELIVERY_TIMEOUT_MS;
  const idle = createIdleConnections({ maxIdle: MAX_IDLE_CONNECTIONS, onSent: metrics.onSent });
  const guard = {
    proxy: createEgressProxy(config, metrics.onTunnel),
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
  const userAgent = `Posthorn/${VERSION}`;
  const exchange = { deadlines, timeoutMs, monotonicMs: monotonicClockMs, userAgent };
  const onResult = metrics.onTokenRequest;
  const tokenBytes = memoryShare('dispatcher', 'token_cache', config.MEMORY_MIB);
  const perSecond = config.HOST_ATTEMPTS_PER_SECOND;
  const tokens = createAccessTokens({
    requestToken: createRequestToken({ ...exchange, agentOf: agents.agentOf, onResult }),
    pace: createTokenPace({ perSecond, monotonicMs: monotonicClockMs }),
    cacheBytes: tokenBytes,
    firstRetryMs: requiredAt(config.RETRY_DELAYS, 0, 'retry delay'),
    nowMs: systemClockMs,
  });
  budgets.add('token_cache', tokenBytes, tokens.usedBytes);
  const send = createSendWebhook({
    ...exchange,
    agentOf: ({ webhook, tls }) => (tls ? tlsClients.agentOf(tls) : agents.agentOf(webhook.id)),
    wallClockMs: systemClockMs,
  });
  return {
    send,
    tokens,
    connections: idle.count,
    async stop() {
      deadlines.stop();
      idle.stop();
      await Promise.all([agents.destroy(), tlsClients.destroy()]);
    },
  };
}

function warnOfOpenings(config: DispatcherConfig, logger: Pick<Logger, 'warn'>): void {
  if (config.EGRESS_ALLOW_CIDRS) {
    logger.warn('EGRESS_ALLOW_CIDRS is set: deliveries may go to private addresses');
  }
  if (config.EGRESS_PROXY_URL && config.EGRESS_PROXY_TARGET === 'name') {
    logger.warn(
      'EGRESS_PROXY_TARGET is name: only the proxy keeps deliveries from private addresses',
    );
  }
}
