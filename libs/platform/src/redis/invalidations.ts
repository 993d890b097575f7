import { onEachConnection, type RedisClient } from './connect.ts';

export interface Invalidation {
  companyId: string;
  /** Id of the app or webhook that has changed, hash of the API key, or `holdSourceOf` the app whose hold has changed. */
  id: string;
}

/** Drops what the caches of this process hold of the changed things, then announces them to the other processes. */
export type Invalidate = (...changed: readonly Invalidation[]) => Promise<void>;

const CHANNEL = 'invalidations';

/**
 * Announces to every process that something cached has changed. A thousand changes are one message of some 60 KB. Lost
 * while Redis is away: within a second the caches learn of it from MongoDB (docs/decisions/0003-caches.md).
 */
export async function announce(
  redis: RedisClient,
  prefix: string,
  changed: readonly Invalidation[],
): Promise<void> {
  const text = changed.map(({ companyId, id }) => `${companyId}/${id}`).join(' ');
  await redis.publish(prefix + CHANNEL, text).catch(() => undefined);
}

/**
 * Listens on the connection `subscriber`, which takes no other commands. What is announced while that is interrupted is
 * lost; the change is followed in MongoDB too.
 */
export function listenForInvalidations(
  subscriber: RedisClient,
  prefix: string,
  onChange: (invalidation: Invalidation) => void,
): void {
  onEachConnection(subscriber, () => {
    void subscriber.subscribe(prefix + CHANNEL).catch(() => undefined);
  });
  subscriber.on('message', (channel: string, text: string) => {
    if (channel !== prefix + CHANNEL) return;
    for (const change of text.split(' ')) {
      // An id may contain a slash itself: that of the hold of an app does.
      const at = change.indexOf('/');
      const [companyId, id] = [change.slice(0, Math.max(0, at)), change.slice(at + 1)];
      if (companyId && id) onChange({ companyId, id });
    }
  });
}
