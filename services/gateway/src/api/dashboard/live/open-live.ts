import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from '../../../config.ts';
import type { GatewayRedis } from '../../../open-redis.ts';
import { createLiveStreams, type LiveStreams } from './live-streams.ts';

const EVERY_MS = 5_000;
/** Longer than three rounds, so that one that is late ends nothing. */
const WATCHED_MS = 20_000;

/** Opens the streams of attempts. They end when a stop begins: requests would be waited for. */
export function openLive(
  { logger, lifecycle }: ServiceContext<GatewayConfig>,
  { live, onNews }: Pick<GatewayRedis, 'live' | 'onNews'>,
): LiveStreams {
  const streams = createLiveStreams({
    watch: (companyIds) => live.watch(companyIds, WATCHED_MS),
  });
  onNews(streams.hear);
  const loop = createLoop({ name: 'live streams', everyMs: EVERY_MS, run: streams.tick, logger });
  loop.start();
  lifecycle.stopping.addEventListener('abort', streams.stop, { once: true });
  lifecycle.onStop('live streams', loop.stop);
  return streams;
}
