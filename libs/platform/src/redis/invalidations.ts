import type { Redis } from 'ioredis';

export interface Invalidation {
  companyId: string;
  /** Of the app or webhook that has changed. */
  id: string;
}

/** In place of an id: so much has changed that naming it all would cost more than looking it up again. */
export const EVERYTHING = '*';

const CHANNEL = 'invalidations';

/** Tells every process that a cached thing has changed. Lost while Redis is away: caches expire by themselves. */
export async function announce(
  redis: Redis,
  prefix: string,
  { companyId, id }: Invalidation,
): Promise<void> {
  await redis.publish(prefix + CHANNEL, `${companyId}/${id}`).catch(() => undefined);
}

/**
 * Listens on a connection of its own. `onMissed` is called after each (re)connection: whatever was
 * announced in between did not arrive.
 */
export function listenForInvalidations(
  subscriber: Redis,
  prefix: string,
  handlers: { onChange: (invalidation: Invalidation) => void; onMissed: () => void },
): void {
  subscriber.on('ready', () => {
    void subscriber.subscribe(prefix + CHANNEL).then(handlers.onMissed, () => undefined);
  });
  subscriber.on('message', (_channel: string, text: string) => {
    const [companyId, id] = text.split('/');
    if (companyId && id) handlers.onChange({ companyId, id });
  });
}
