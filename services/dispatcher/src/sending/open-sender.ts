import { requiredAt } from '@posthorn/domain/required.ts';
import { egressPolicyOf } from '@posthorn/platform/service/egress-policy.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { monotonicClockMs, systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { Agent } from 'undici';
import type { DispatcherConfig } from '../config.ts';
import { createDeadlineSweep } from './deadline-sweep.ts';
import { openEgressProxy } from './connect/proxy/open-egress-proxy.ts';
import { createDeliveryAgent } from './connect/delivery-agent.ts';
import { createIdleConnections } from './connect/idle-connections.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import { createSendWebhook, type SendWebhook } from './send-webhook.ts';
import { createSenderMetrics } from './sender-metrics.ts';

const MAX_IDLE_CONNECTIONS = 2_048;
/**
 * An undici pool tries its connections one by one to find a free one: with 300 connections to one
 * origin that took 13 % of the dispatcher's CPU. The webhooks that share an origin are spread over this
 * many pools.
 */
const AGENTS = 16;

/** Opens what requests need: host look-ups, connections, deadlines and their metrics. */
export function openSender({
  config,
  lifecycle,
  registry,
  logger,
}: Pick<
  ServiceContext<DispatcherConfig>,
  'config' | 'lifecycle' | 'registry' | 'logger'
>): SendWebhook {
  warnOfOpenings(config, logger);
  const timeoutMs = config.DELIVERY_TIMEOUT_MS;
  const metrics = createSenderMetrics(registry);
  const idle = createIdleConnections({ maxIdle: MAX_IDLE_CONNECTIONS, onSent: metrics.onSent });
  const guard = {
    proxy: openEgressProxy(config, metrics.onTunnel),
    policy: egressPolicyOf(config),
    connectTimeoutMs: timeoutMs,
    hosts: createHostResolver(),
    onRefused: metrics.onRefused,
    onOpened: idle.add,
  };
  const agents = Array.from({ length: AGENTS }, () => createDeliveryAgent(guard));
  const deadlines = createDeadlineSweep(monotonicClockMs);
  lifecycle.onStop('sender', async () => {
    deadlines.stop();
    idle.stop();
    await Promise.all(agents.map((agent) => agent.destroy()));
  });
  return createSendWebhook({
    agentOf: (webhookId) => agentOf(agents, webhookId),
    deadlines,
    timeoutMs,
    userAgent: `Posthorn/${VERSION}`,
    wallClockMs: systemClockMs,
    monotonicMs: monotonicClockMs,
  });
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

/** Chooses by the last character of the id, which is random; an id begins with its time. */
function agentOf(agents: readonly Agent[], webhookId: string): Agent {
  const last = webhookId.charCodeAt(webhookId.length - 1);
  return requiredAt(agents, last % agents.length, 'agent');
}
