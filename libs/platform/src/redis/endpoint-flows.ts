import { z } from 'zod';
import { sendAll, type Command } from './across-slots.ts';
import type { RedisClient } from './connect.ts';

/** How the dispatcher that owns a webhook sends to its endpoint. */
export interface EndpointFlow {
  /** Attempts that it may have at once. */
  concurrency: number;
  /** Attempts per second, configured or learned; null without a limit. */
  ratePerSecond: number | null;
  /** The end of the hold that it asked for, in milliseconds since 1970; null without a hold. */
  heldUntilMs: number | null;
}

/** What dispatchers report about endpoints that they send to differently than to a new one. */
export interface EndpointFlows {
  /** Null when nothing was reported in the last three minutes. Rejects without Redis. */
  read: (webhookId: string) => Promise<EndpointFlow | null>;
  /** When each current hold ends, in milliseconds since 1970, by webhook id. Rejects without Redis. */
  readHolds: () => Promise<Map<string, number>>;
  /** Stores flows by webhook id, without waiting for Redis; while Redis is away nothing is stored. */
  report: (flows: ReadonlyMap<string, EndpointFlow>) => void;
  /** Stores a hold, without waiting for Redis. */
  reportHold: (webhookId: string, untilMs: number) => void;
}

const flowSchema = z.object({
  concurrency: z.number(),
  ratePerSecond: z.number().nullable(),
  heldUntilMs: z.number().nullable(),
});

/** Dispatchers report again before this; reports of a dispatcher that crashed expire. */
export const FLOW_TTL_MS = 180_000;
const HOLDS_KEY = 'endpoint-holds';

/** Uses a key for each flow, which expires, and one hash of the holds, which a new owner reads at once. */
export function createEndpointFlows(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): EndpointFlows {
  const keyOf = (webhookId: string): string => `${prefix}endpoint-flow:${webhookId}`;
  const holdsKey = prefix + HOLDS_KEY;
  const ignoreFailure = (command: Promise<unknown>): void => void command.catch(() => undefined);
  return {
    async read(webhookId) {
      const text = await redis.get(keyOf(webhookId));
      return text === null ? null : flowSchema.parse(JSON.parse(text));
    },
    async readHolds() {
      const all = Object.entries(await redis.hgetall(holdsKey)).map(
        ([id, text]): [string, number] => [id, Number(text)],
      );
      const ended = all.filter(([, untilMs]) => untilMs <= nowMs()).map(([id]) => id);
      if (ended.length > 0) ignoreFailure(redis.hdel(holdsKey, ...ended));
      return new Map(all.filter(([, untilMs]) => untilMs > nowMs()));
    },
    report(flows) {
      const toCommand = ([id, flow]: [string, EndpointFlow]): Command => {
        return ['set', keyOf(id), JSON.stringify(flow), 'PX', FLOW_TTL_MS];
      };
      ignoreFailure(sendAll(redis, [...flows].map(toCommand)));
    },
    reportHold(webhookId, untilMs) {
      ignoreFailure(redis.hset(holdsKey, webhookId, String(untilMs)));
    },
  };
}
