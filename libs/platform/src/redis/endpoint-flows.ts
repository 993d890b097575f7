import { createHash } from 'node:crypto';
import { z } from 'zod';
import { MAX_DATE_MS, parseStored, readPatiently, type RedisCommand, sendAll } from './commands.ts';
import type { RedisClient } from './connect.ts';

/** How the dispatcher that owns a webhook sends to its endpoint. */
export interface EndpointFlow {
  /** Attempts that it may have at once. */
  concurrency: number;
  /** The most that `concurrency` may become there. */
  ceiling: number;
  /** Attempts per second, configured or learned; null without a limit. */
  ratePerSecond: number | null;
  /** The end of the hold that it asked for, in milliseconds since 1970; null without a hold. */
  heldUntilMs: number | null;
}

/** What dispatchers report about endpoints that they send to differently than to a new one. */
export interface EndpointFlows {
  /** Null when no flow was reported in the last three minutes. Rejects without Redis. */
  read: (webhookId: string) => Promise<EndpointFlow | null>;
  /** Returns the current holds by webhook id, and removes those that have ended. Rejects without Redis. */
  takeOverHolds: () => Promise<Map<string, SharedHold>>;
  /** Stores flows by webhook id, without waiting for Redis; while Redis is away nothing is stored. */
  report: (flows: ReadonlyMap<string, EndpointFlow>) => void;
  /** Stores a hold that the endpoint at this URL asked for, without waiting for Redis. */
  reportHold: (webhookId: string, url: string, untilMs: number) => void;
}

interface SharedHold {
  /** Milliseconds since 1970. */
  untilMs: number;
  /** See `urlHashOf`; null when its field is missing. */
  urlHash: string | null;
}

const flowSchema = z.object({
  concurrency: z.number(),
  ceiling: z.number(),
  ratePerSecond: z.number().nullable(),
  heldUntilMs: z.int().min(0).max(MAX_DATE_MS).nullable(),
});

/** Dispatchers report again before this; reports of a dispatcher that crashed expire. */
export const FLOW_TTL_MS = 180_000;
const HOLDS_KEY = 'endpoint-holds';
/** The field of a hold's URL: webhook id and this. The field of the id alone has the end of the hold, as a number. */
const URL_FIELD = ' url';

/** Returns a hash that distinguishes URLs. A URL may contain secrets, and is not stored here. */
export function urlHashOf(url: string): string {
  return `url:${createHash('sha256').update(url).digest('base64url').slice(0, 16)}`;
}

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
      return text === null ? null : parseStored(flowSchema, text);
    },
    async takeOverHolds() {
      const fields = (await readPatiently(redis, 'hgetall', [holdsKey])) as Record<string, string>;
      const all = Object.keys(fields).filter((field) => !field.endsWith(URL_FIELD));
      const isCurrent = (id: string): boolean => Number(fields[id]) > nowMs();
      const ended = all.filter((id) => !isCurrent(id)).flatMap((id) => [id, id + URL_FIELD]);
      if (ended.length > 0) ignoreFailure(redis.hdel(holdsKey, ...ended));
      const holdOf = (id: string): [string, SharedHold] => {
        return [id, { untilMs: Number(fields[id]), urlHash: fields[id + URL_FIELD] ?? null }];
      };
      return new Map(all.filter(isCurrent).map(holdOf));
    },
    report(flows) {
      const toCommand = ([id, flow]: [string, EndpointFlow]): RedisCommand => {
        return ['set', keyOf(id), JSON.stringify(flow), 'PX', FLOW_TTL_MS];
      };
      ignoreFailure(sendAll(redis, [...flows].map(toCommand)));
    },
    reportHold(webhookId, url, untilMs) {
      const values = [webhookId, String(untilMs), webhookId + URL_FIELD, urlHashOf(url)];
      ignoreFailure(redis.hset(holdsKey, ...values));
    },
  };
}
