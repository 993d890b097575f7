import type { RedisClient } from './connect.ts';

/**
 * The open circuits, for the dispatcher that takes their webhooks over and for the gateway. A circuit's
 * time is when its next probe may be made, in milliseconds since 1970.
 */
export interface OpenCircuits {
  /** The time of each open circuit, by webhook id. Rejects without Redis. */
  readAll: () => Promise<Map<string, number>>;
  /** Null when the circuit is closed. Rejects without Redis. */
  read: (webhookId: string) => Promise<number | null>;
  /** Stores an open circuit without waiting for Redis; while Redis is away nothing is stored. */
  opened: (webhookId: string, untilMs: number) => void;
  /** Removes a circuit without waiting for Redis. */
  closed: (webhookId: string) => void;
}

const KEY = 'open-circuits';
/** No record is deferred by an open circuit for longer. */
const FORGET_AFTER_MS = 12 * 3_600_000;

/** Uses one Redis hash: a new owner reads it in one step, and it has failing endpoints only. */
export function createOpenCircuits(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): OpenCircuits {
  const key = prefix + KEY;
  const isCurrent = (untilMs: number): boolean => untilMs + FORGET_AFTER_MS > nowMs();
  const ignoreFailure = (command: Promise<unknown>): void => void command.catch(() => undefined);
  return {
    async readAll() {
      const entries = Object.entries(await redis.hgetall(key));
      const all = entries.map(([id, text]): [string, number] => [id, Number(text)]);
      const stale = all.filter(([, untilMs]) => !isCurrent(untilMs)).map(([id]) => id);
      if (stale.length > 0) ignoreFailure(redis.hdel(key, ...stale));
      return new Map(all.filter(([, untilMs]) => isCurrent(untilMs)));
    },
    async read(webhookId) {
      const text = await redis.hget(key, webhookId);
      return text !== null && isCurrent(Number(text)) ? Number(text) : null;
    },
    opened: (webhookId, untilMs) => {
      ignoreFailure(redis.hset(key, webhookId, String(untilMs)));
    },
    closed: (webhookId) => {
      ignoreFailure(redis.hdel(key, webhookId));
    },
  };
}
