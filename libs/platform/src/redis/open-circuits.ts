import { readPatiently } from './commands/read-patiently.ts';
import type { RedisClient } from './connect.ts';

/**
 * The open circuits, for the dispatcher that takes their webhooks over and for the gateway. A circuit's
 * time is when its next probe may be made, in milliseconds since 1970.
 */
export interface OpenCircuits {
  /** Returns the time of each open circuit by webhook id, and removes those that have ended. Rejects without Redis. */
  takeOverCircuits: () => Promise<Map<string, number>>;
  /** The same with the time since when each is open, for the gateway, which changes nothing. Rejects without Redis. */
  list: () => Promise<OpenCircuit[]>;
  /** Null when the circuit is closed. Rejects without Redis. */
  read: (webhookId: string) => Promise<number | null>;
  /** Stores an open circuit without waiting for Redis; while Redis is away nothing is stored. */
  opened: (webhookId: string, untilMs: number) => void;
  /** Removes a circuit without waiting for Redis. */
  closed: (webhookId: string) => void;
}

export interface OpenCircuit {
  webhookId: string;
  probeAtMs: number;
  /** When it opened first, without a success since. Null when a dispatcher of an earlier version has opened it. */
  sinceMs: number | null;
}

const KEY = 'open-circuits';
/** Webhook id → when its circuit opened. Apart, because earlier versions read the values of the other hash. */
const SINCE_KEY = 'circuits-since';
/** No record is deferred by an open circuit for longer. */
const FORGET_AFTER_MS = 12 * 3_600_000;

/** Uses one Redis hash: a new owner reads it in one step, and it has failing endpoints only. */
export function createOpenCircuits(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): OpenCircuits {
  const key = prefix + KEY;
  const sinceKey = prefix + SINCE_KEY;
  const isCurrent = (untilMs: number): boolean => untilMs + FORGET_AFTER_MS > nowMs();
  const ignoreFailure = (command: Promise<unknown>): void => void command.catch(() => undefined);
  return {
    async takeOverCircuits() {
      const stored = (await readPatiently(redis, 'hgetall', [key])) as Record<string, string>;
      const entries = Object.entries(stored);
      const all = entries.map(([id, text]): [string, number] => [id, Number(text)]);
      const stale = all.filter(([, untilMs]) => !isCurrent(untilMs)).map(([id]) => id);
      if (stale.length > 0) {
        for (const each of [key, sinceKey]) ignoreFailure(redis.hdel(each, ...stale));
      }
      return new Map(all.filter(([, untilMs]) => isCurrent(untilMs)));
    },
    async list() {
      const [untils, sinces] = await Promise.all([redis.hgetall(key), redis.hgetall(sinceKey)]);
      return Object.entries(untils)
        .map(([webhookId, text]) => ({
          webhookId,
          probeAtMs: Number(text),
          sinceMs: sinces[webhookId] === undefined ? null : Number(sinces[webhookId]),
        }))
        .filter(({ probeAtMs }) => isCurrent(probeAtMs));
    },
    async read(webhookId) {
      const text = await redis.hget(key, webhookId);
      return text !== null && isCurrent(Number(text)) ? Number(text) : null;
    },
    opened: (webhookId, untilMs) => {
      ignoreFailure(redis.hset(key, webhookId, String(untilMs)));
      // A failed probe opens it again: the first time stays.
      ignoreFailure(redis.hsetnx(sinceKey, webhookId, String(nowMs())));
    },
    closed: (webhookId) => {
      for (const each of [key, sinceKey]) ignoreFailure(redis.hdel(each, webhookId));
    },
  };
}
