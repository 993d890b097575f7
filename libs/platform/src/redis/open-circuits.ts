import type { Redis } from 'ioredis';

/** Which circuits are open, for who takes their webhooks over and for who asks about them. */
export interface OpenCircuits {
  /** Webhook id → when its next probe may be made, in milliseconds since 1970. Rejects without Redis. */
  readAll: () => Promise<Map<string, number>>;
  /** Null when it is closed. Rejects without Redis. */
  read: (webhookId: string) => Promise<number | null>;
  /** Told and not waited for: without Redis the circuit stands where it is. */
  opened: (webhookId: string, untilMs: number) => void;
  closed: (webhookId: string) => void;
}

const KEY = 'open-circuits';
/** Longer than the longest wait of a record that an open circuit deferred. */
const FORGOTTEN_AFTER_MS = 12 * 3_600_000;

/** One Redis hash: a new owner reads all of it in one step, and it holds sick endpoints only. */
export function createOpenCircuits(
  redis: Redis,
  prefix: string,
  nowMs: () => number,
): OpenCircuits {
  const key = prefix + KEY;
  const isCurrent = (untilMs: number): boolean => untilMs + FORGOTTEN_AFTER_MS > nowMs();
  const tell = (told: Promise<unknown>): void => void told.catch(() => undefined);
  return {
    async readAll() {
      const entries = Object.entries(await redis.hgetall(key));
      const all = entries.map(([id, text]): [string, number] => [id, Number(text)]);
      const forgotten = all.filter(([, untilMs]) => !isCurrent(untilMs)).map(([id]) => id);
      if (forgotten.length > 0) tell(redis.hdel(key, ...forgotten));
      return new Map(all.filter(([, untilMs]) => isCurrent(untilMs)));
    },
    async read(webhookId) {
      const text = await redis.hget(key, webhookId);
      return text !== null && isCurrent(Number(text)) ? Number(text) : null;
    },
    opened: (webhookId, untilMs) => {
      tell(redis.hset(key, webhookId, String(untilMs)));
    },
    closed: (webhookId) => {
      tell(redis.hdel(key, webhookId));
    },
  };
}
