import { createLoop, stopSoon } from '@posthorn/platform/async/loop.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { closeServer } from '@posthorn/platform/service/close-server.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createCanaryApi } from './canary-api.ts';
import { createCanaryMetrics } from './canary-metrics.ts';
import { startCanaryServer } from './canary-server.ts';
import { readCanary, type CanaryConfig } from './canary-settings.ts';
import { createReceiveCanary } from './receive-canary.ts';
import { createSendCanary } from './send-canary.ts';

const CLOSE_AFTER_MS = 1_000;

/**
 * Sends a message to itself again and again, through the gateway's front door, when settings say so. Each process
 * sends, and any of them may receive: they share one webhook. Throws StartupError when only a part is set.
 */
export async function startCanary(
  context: Pick<
    ServiceContext<CanaryConfig & { OPS_HOST: string }>,
    'config' | 'lifecycle' | 'registry' | 'logger'
  >,
): Promise<void> {
  const { config, lifecycle, registry, logger } = context;
  const addresses = readCanary(config);
  if (!addresses) return;
  const { apiKey, gatewayUrl, receiverUrl } = addresses;
  const metrics = createCanaryMetrics(registry, systemClockMs);
  const { send, webhook, readAgain } = createSendCanary({
    api: createCanaryApi({ gatewayUrl, apiKey, signal: lifecycle.stopping }),
    receiverUrl,
    metrics,
    nowMs: systemClockMs,
  });
  const server = await startCanaryServer({
    host: config.OPS_HOST,
    port: config.CANARY_PORT,
    receive: createReceiveCanary({ webhook, readAgain, metrics }),
  });
  lifecycle.onStop('canary receiver', () => closeServer(server, CLOSE_AFTER_MS));
  const loop = createLoop({ name: 'canary', everyMs: config.CANARY_INTERVAL, run: send, logger });
  loop.start();
  lifecycle.onStop('canary', () => stopSoon(loop));
}
