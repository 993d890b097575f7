import { egressPolicyOf } from '@posthorn/platform/egress-policy.ts';
import { VERSION } from '@posthorn/platform/metrics.ts';
import type { ServiceContext } from '@posthorn/platform/service.ts';
import { systemClockMs } from '@posthorn/platform/system.ts';
import type { DispatcherConfig } from './config.ts';
import { createDeadlineSweep } from './deadline-sweep.ts';
import { createDeliveryAgent } from './delivery-agent.ts';
import { createIdleConnections } from './idle-connections.ts';
import { createHostResolver } from './resolve-host.ts';
import { createSendWebhook, type SendWebhook } from './send-webhook.ts';
import { createSenderMetrics } from './sender-metrics.ts';

const MAX_IDLE_CONNECTIONS = 2_048;

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
  const agent = createDeliveryAgent({
    policy: egressPolicyOf(config),
    connectTimeoutMs: timeoutMs,
    hosts: createHostResolver(),
    onRefused: metrics.onRefused,
    onOpened: idle.opened,
  });
  const deadlines = createDeadlineSweep(monotonicMs);
  lifecycle.onStop('sender', async () => {
    deadlines.stop();
    idle.stop();
    await agent.destroy();
  });
  return createSendWebhook({
    ...{ agent, deadlines, timeoutMs, userAgent: `Posthorn/${VERSION}` },
    ...{ wallClockMs: systemClockMs, monotonicMs },
  });
}
