import { MAX_HOLD_MS } from '@posthorn/domain/delivery/schedule.ts';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  MAX_DATE_MS,
  parseStored,
  readAll,
  readPatiently,
  type RedisCommand,
  sendAll,
  type TakenOver,
  type TakeOverLimits,
  takeOverPartitions,
} from './commands.ts';
import type { RedisClient } from './connect.ts';

/** How the dispatcher that owns a webhook sends to its endpoint. */
export interface EndpointFlow {
  /** Attempts that it may have at once. */
  concurrency: number;
  /** The most that `concurrency` may become there. */
  ceiling: number;
  /** Attempts per second, configured or learned; null without a limit. */
  ratePerSecond: number | null;
  /** The end of the pause that it asked for, in milliseconds since 1970; null without a pause. */
  heldUntilMs: number | null;
  /** The numbers for its next owner. */
  learned: LearnedFlow;
}

/** The numbers that the next owner of the webhook's partition begins with: those of isolation/endpoint.ts. */
export type LearnedFlow = z.infer<typeof learnedSchema>;

/** The reports of dispatchers about endpoints that they send to differently than to a new one. */
export interface EndpointFlows {
  /** Null when no flow was reported in the last three minutes. Rejects without Redis. */
  read: (webhookId: string) => Promise<EndpointFlow | null>;
  /** The same for several, in order. Waits for a late reply. */
  readAll: (webhookIds: readonly string[]) => Promise<(EndpointFlow | null)[]>;
  /** Stores flows by webhook id, without waiting for Redis; while Redis is away nothing is stored. */
  report: (flows: ReadonlyMap<string, EndpointFlow>) => void;
  /** Reads the pauses of these partitions by `pauseKeyOf`. Rejects when none of the partitions can be read. */
  takeOverPauses: (
    partitions: readonly number[],
    limits: TakeOverLimits,
  ) => Promise<TakenOver<SharedPause>>;
  /** Stores the end (milliseconds since 1970) of a pause that the endpoint asked for, without waiting for Redis. */
  reportPause: (of: PausedEndpoint, untilMs: number) => void;
}

export interface PausedEndpoint {
  webhookId: string;
  url: string;
  /** The partition of the webhook's records. */
  partition: number;
}

export interface SharedPause {
  /** Milliseconds since 1970. */
  untilMs: number;
  partition: number;
}

const count = z.number().min(0);
const learnedSchema = z.object({
  /** See `urlHashOf`: another URL is another endpoint. */
  urlHash: z.string(),
  isSlow: z.boolean(),
  quickestMs: count,
  limit: z.object({
    value: count,
    slowStartThreshold: count.nullable(),
    lowestMs: count.nullable(),
  }),
  rate: z
    .object({ base: count, plateau: count.nullable(), grownMs: count, confirmed: count })
    .nullable(),
});

const flowSchema = z.object({
  concurrency: z.number(),
  ceiling: z.number(),
  ratePerSecond: z.number().nullable(),
  heldUntilMs: z.int().min(0).max(MAX_DATE_MS).nullable(),
  learned: learnedSchema,
});

/** Dispatchers report again before this; reports of a dispatcher that crashed expire. */
export const FLOW_TTL_MS = 180_000;
/** A key to which nothing was written for this time has no current pause. */
const PAUSES_TTL_MS = MAX_HOLD_MS + 60_000;

/** Returns a hash that distinguishes URLs. A URL may contain secrets, and is not stored here. */
export function urlHashOf(url: string): string {
  return `url:${createHash('sha256').update(url).digest('base64url').slice(0, 16)}`;
}

/** Names a pause: a changed URL is another endpoint. */
export function pauseKeyOf({ webhookId, url }: Pick<PausedEndpoint, 'webhookId' | 'url'>): string {
  return `${webhookId} ${urlHashOf(url)}`;
}

/**
 * Uses a key for each flow, and a sorted set for each partition with its pauses by their ends. Both expire. Each new
 * pause of a partition removes those that have ended.
 */
export function createEndpointFlows(
  redis: RedisClient,
  prefix: string,
  nowMs: () => number,
): EndpointFlows {
  const keyOf = (webhookId: string): string => `${prefix}endpoint-flow:${webhookId}`;
  const pausesOf = (partition: number): string => `${prefix}pauses-of-partition:${partition}`;
  const sendUnawaited = (commands: RedisCommand[]): void =>
    void sendAll(redis, commands).catch(() => undefined);

  async function readPauses(partition: number, most: number): Promise<[string, SharedPause][]> {
    const args = [pausesOf(partition), `(${nowMs()}`, '+inf', 'WITHSCORES', 'LIMIT', 0, most];
    const stored = (await readPatiently(redis, 'zrangebyscore', args)) as string[];
    const pauses: [string, SharedPause][] = [];
    for (let n = 0; n + 1 < stored.length; n += 2) {
      const [key = '', score] = stored.slice(n, n + 2);
      const untilMs = Number(score);
      if (Number.isFinite(untilMs)) pauses.push([key, { untilMs, partition }]);
    }
    return pauses;
  }

  const toFlow = (text: string | null): EndpointFlow | null =>
    text === null ? null : parseStored(flowSchema, text);

  return {
    read: async (webhookId) => toFlow(await redis.get(keyOf(webhookId))),
    readAll: async (webhookIds) => (await readAll(redis, webhookIds.map(keyOf))).map(toFlow),
    report(flows) {
      const toCommand = ([id, flow]: [string, EndpointFlow]): RedisCommand => {
        return ['set', keyOf(id), JSON.stringify(flow), 'PX', FLOW_TTL_MS];
      };
      sendUnawaited([...flows].map(toCommand));
    },
    takeOverPauses: (partitions, limits) =>
      takeOverPartitions((each) => readPauses(each, limits.most), partitions, limits),
    reportPause(of, untilMs) {
      const key = pausesOf(of.partition);
      sendUnawaited([
        ['zadd', key, untilMs, pauseKeyOf(of)],
        ['zremrangebyscore', key, '-inf', nowMs()],
        ['pexpire', key, PAUSES_TTL_MS],
      ]);
    },
  };
}
