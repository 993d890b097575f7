import type { RedisClient } from './connect.ts';

export interface Invalidation {
  companyId: string;
  /** Id of the app or webhook that has changed, hash of the API key, or EVERYTHING. */
  id: string;
}

/** Drops what the caches of this process hold of the changed thing, then announces it to the other processes. */
export type Invalidate = (invalidation: Invalidation) => Promise<void>;

/** Stands for every id of the company: so much has changed that naming it all would cost more. */
export const EVERYTHING = '*';

const CHANNEL = 'invalidations';

/** Tells every process that something cached has changed. Lost while Redis is away: caches expire anyway. */
export async function announce(
  redis: RedisClient,
  prefix: string,
  { companyId, id }: Invalidation,
): Promise<void> {
  await redis.publish(prefix + CHANNEL, `${companyId}/${id}`).catch(() => undefined);
}

/**
 * Listens on the connection `subscriber`, which takes no other commands. Calls `onMissed` after each
 * connection, because announcements before it did not arrive.
 */
export function listenForInvalidations(
  subscriber: RedisClient,
  prefix: string,
  handlers: { onChange: (invalidation: Invalidation) => void; onMissed: () => void },
): void {
  subscriber.on('ready', () => {
    void subscriber.subscribe(prefix + CHANNEL).then(handlers.onMissed, () => undefined);
  });
  subscriber.on('message', (channel: string, text: string) => {
    if (channel !== prefix + CHANNEL) return;
    const [companyId, id] = text.split('/');
    if (companyId && id) handlers.onChange({ companyId, id });
  });
}
