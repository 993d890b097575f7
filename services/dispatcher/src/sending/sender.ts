import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import { MAX_TIMEOUT_SECONDS } from '@posthorn/domain/webhook-fields.ts';
import { requiredAt } from '@posthorn/domain/required.ts';
import type { EgressRefusal } from '@posthorn/domain/egress.ts';
import { type MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { monotonicClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
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
import { type Connections, createConnections } from './connect/connections.ts';
import { createEgressProxy, type TunnelResult } from './connect/egress-proxy.ts';
import { createHostResolver, type HostResolver } from './connect/resolve-host.ts';
import { createTlsSessions, type Handshake } from './connect/tls-sessions.ts';
import { createDeadlineSweep, createSendWebhook, type SendWebhook } from './send-webhook.ts';

export interface Sender {
  send: SendWebhook;
  tokens: AccessTokens;
  shown: ShownConnections;
  stop: () => Promise<void>;
}

/** Read at each scrape. */
export interface ShownConnections {
  /** Open connections to endpoints and token servers, and how many of them carry no request. */
  connections: () => { open: number; idle: number };
  /** Look-ups of the addresses of a host: `hit` without a question to a name server. */
  lookups: () => Readonly<Record<'hit' | 'miss', number>>;
}

export interface SenderMetrics {
  onRefused: (reason: EgressRefusal) => void;
  /** Called for each request. `isReused` is false for the first on its connection. */
  onSent: (isReused: boolean) => void;
  /** Called for each TLS handshake with an endpoint or a token server that has succeeded. */
  onHandshake: (kind: Handshake) => void;
  /** Called for each idle connection that is closed because of the memory of the connections. */
  onEvicted: () => void;
  onTunnel: (result: TunnelResult) => void;
  onTokenRequest: (result: TokenResult) => void;
}

interface SenderDeps {
  metrics: SenderMetrics;
  budgets: MemoryBudgets;
  logger: Pick<Logger, 'warn'>;
  /** The time of the database, in milliseconds since 1970. */
  nowMs: () => number;
}

type SharePart = 'connections' | 'host_cache' | 'tls_clients' | 'tls_session_cache' | 'token_cache';

/** Sends requests: host look-ups, connections, deadlines and access tokens together. */
export function createSender(
  config: DispatcherConfig,
  { metrics, budgets, logger, nowMs }: SenderDeps,
): Sender {
  warnOfOpenings(config, logger);
  const timeoutMs = config.DELIVERY_TIMEOUT_MS;
  const share = (part: SharePart): number => memoryShare('dispatcher', part, config.MEMORY_MIB);
  const { connections, hosts } = openConnections(config, share, { metrics, budgets });
  const deadlines = createDeadlineSweep(monotonicClockMs);
  const userAgent = `Posthorn/${VERSION}`;
  const exchange = { deadlines, timeoutMs, monotonicMs: monotonicClockMs, userAgent };
  const onResult = metrics.onTokenRequest;
  const perSecond = config.HOST_ATTEMPTS_PER_SECOND;
  const tokens = createAccessTokens({
    requestToken: createRequestToken({ ...exchange, agent: connections.agentOf(null), onResult }),
    pace: createTokenPace({ perSecond, monotonicMs: monotonicClockMs }),
    cacheBytes: share('token_cache'),
    firstRetryMs: requiredAt(config.RETRY_DELAYS, 0, 'retry delay'),
    nowMs,
  });
  budgets.add('token_cache', share('token_cache'), tokens.usedBytes);
  const send = createSendWebhook({
    ...exchange,
    agentOf: ({ tls }) => connections.agentOf(tls),
    nowMs,
  });
  return {
    send,
    tokens,
    shown: { connections: connections.count, lookups: hosts.counts },
    async stop() {
      deadlines.stop();
      await connections.destroy();
    },
  };
}

/** Opens the connections to endpoints, with what is remembered for new ones. */
function openConnections(
  config: DispatcherConfig,
  share: (part: SharePart) => number,
  { metrics, budgets }: Pick<SenderDeps, 'metrics' | 'budgets'>,
): { connections: Connections; hosts: HostResolver } {
  const hosts = createHostResolver({ maxBytes: share('host_cache') });
  const sessions = createTlsSessions({
    maxBytes: share('tls_session_cache'),
    onHandshake: metrics.onHandshake,
  });
  const guard = {
    proxy: createEgressProxy(config, metrics.onTunnel),
    policy: egressPolicyOf(config),
    // Webhooks with other timeouts share the connections: the deadline sweep ends each attempt at its own.
    connectTimeoutMs: Math.max(config.DELIVERY_TIMEOUT_MS, MAX_TIMEOUT_SECONDS * 1_000),
    hosts,
    sessions,
    onRefused: metrics.onRefused,
  };
  const connections = createConnections({
    guard,
    maxBytes: share('connections'),
    tlsClientBytes: share('tls_clients'),
    onSent: metrics.onSent,
    onEvicted: metrics.onEvicted,
  });
  budgets.add('connections', share('connections'), connections.usedBytes);
  budgets.add('tls_clients', share('tls_clients'), connections.tlsClientBytes);
  budgets.add('tls_session_cache', share('tls_session_cache'), sessions.usedBytes);
  budgets.add('host_cache', share('host_cache'), hosts.usedBytes);
  return { connections, hosts };
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
