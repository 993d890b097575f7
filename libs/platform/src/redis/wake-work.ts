import { onEachConnection, type RedisClient } from './connect.ts';

/** What the retry service does for clients, each kind with notes of its own. */
export type WorkKind = 'releases' | 'removals' | 'resends';

/** Begins the work whose note was written. */
export type WakeWork = (kind: WorkKind) => void;

const CHANNEL = 'work';

/**
 * Tells the retry services that a note of work was written. Lost while Redis is away: they look for notes that are due each
 * second anyway.
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
