import { egressPolicyOf } from '@posthorn/platform/service/egress-policy.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { DispatcherConfig } from '../config.ts';
import type { Agent } from 'undici';
import { createDeadlineSweep } from './deadline-sweep.ts';
import { createDeliveryAgent } from './connect/delivery-agent.ts';
import { createIdleConnections } from './connect/idle-connections.ts';
import { createHostResolver } from './connect/resolve-host.ts';
import { createSendWebhook, type SendWebhook } from './send-webhook.ts';
import { createSenderMetrics } from './sender-metrics.ts';

const MAX_IDLE_CONNECTIONS = 2_048;
/**
 * An undici pool looks for a free connection one by one: with 300 to one origin that took 13 % of the
 * dispatcher. Webhooks that share an origin are spread over this many pools of it.
 */
const AGENTS = 16;

/** All that an attempt needs to leave: look-ups, connections, deadlines and their metrics. */
export function openSender({
  config,
  lifecycle,
  registry,
}: Pick<ServiceContext<DispatcherConfig>, 'config' | 'lifecycle' | 'registry'>): SendWebhook {
  const timeoutMs = config.DELIVERY_TIMEOUT_MS;
  const monotonicMs = (): number => performance.now();
  const metrics = createSenderMetrics(registry);
  const idle = createIdleConnections({ maxIdle: MAX_IDLE_CONNECTIONS, onSent: metrics.onSent });
  const guard = {
    policy: egressPolicyOf(config),
    connectTimeoutMs: timeoutMs,
    hosts: createHostResolver(),
    onRefused: metrics.onRefused,
    onOpened: idle.opened,
  };
  const agents = Array.from({ length: AGENTS }, () => createDeliveryAgent(guard));
  const deadlines = createDeadlineSweep(monotonicMs);
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
    monotonicMs,
  });
}

/** The end of an id is random; its beginning is the time. */
function agentOf(agents: readonly Agent[], webhookId: string): Agent {
  const last = webhookId.charCodeAt(webhookId.length - 1);
  const agent = agents[last % agents.length];
  if (!agent) throw new Error('there is no agent');
  return agent;
}
