import { onEachConnection, type RedisClient } from './connect.ts';

/**
 * The work of the retry service for clients, each kind with notes of its own. `timed` has none: a replay has given an old
 * message to a webhook, and it is to be delivered at a time ahead (`deliverAt`).
 */
export type WorkKind = 'releases' | 'removals' | 'resends' | 'cancellations' | 'timed';

/** Begins the work whose note was written. */
export type WakeWork = (kind: WorkKind) => void;

const CHANNEL = 'work';

/**
 * Announces to the retry services that a note of work was written. Lost while Redis is away: they look for notes that are due
 * each second, and for what waits for a time each minute.
 */
export async function announceWork(
  redis: RedisClient,
  prefix: string,
  kind: WorkKind,
): Promise<void> {
  await redis.publish(prefix + CHANNEL, kind).catch(() => undefined);
}

/** Listens on the connection `subscriber`, which takes no other commands. */
export function listenForWork(
  subscriber: RedisClient,
  prefix: string,
  onWork: (kind: string) => void,
): void {
  onEachConnection(subscriber, () => {
    void subscriber.subscribe(prefix + CHANNEL).catch(() => undefined);
  });
  subscriber.on('message', (channel: string, kind: string) => {
    if (channel === prefix + CHANNEL) onWork(kind);
  });
}
