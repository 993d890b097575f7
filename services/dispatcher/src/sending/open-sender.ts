import { requiredAt } from '@posthorn/domain/required.ts';
import { egressPolicyOf } from '@posthorn/platform/service/egress-policy.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { DispatcherConfig } from '../config.ts';
import { createDeadlineSweep } from './deadline-sweep.ts';
import { openEgressProxy } from './connect/proxy/open-egress-proxy.ts';
import { createIdleConnections } from './connect/idle-connections.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import { createSpreadAgents } from './connect/spread-agents.ts';
import { createTlsClients } from './connect/tls-clients.ts';
import { createSendWebhook, type SendWebhook } from './send-webhook.ts';
import { createSenderMetrics, watchSockets } from './sender-metrics.ts';
import { createAccessTokens, type AccessTokens } from './tokens/access-tokens.ts';
import { createRequestToken, type RequestToken } from './tokens/request-token.ts';
import { createTokenPace } from './tokens/token-pace.ts';

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
    connectTimeoutMs: timeoutMs,
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
