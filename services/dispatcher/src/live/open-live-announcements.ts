import type { LiveAttempts } from '@posthorn/platform/redis/live-attempts.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { AnnounceAttempt } from '../settle/settle-delivery.ts';
import { createLiveAnnouncements } from './announce-attempts.ts';

/** Starts to tell gateways of attempts that somebody watches. */
export function openLiveAnnouncements(
  { logger, lifecycle }: Pick<ServiceContext<unknown>, 'logger' | 'lifecycle'>,
  live: LiveAttempts,
): AnnounceAttempt {
  const { announce, start, stop } = createLiveAnnouncements({ live, logger });
  start();
  lifecycle.onStop('live attempts', stop);
  return announce;
}
