import type { Redis } from 'ioredis';
import { z } from 'zod';

/** How the dispatcher that owns a webhook treats its endpoint. */
export interface EndpointFlow {
  /** Attempts it may have at once. */
  concurrency: number;
  /** Attempts per second, set or learned; null for no bound. */
  ratePerSecond: number | null;
  /** The pause that it asked for ends then, in milliseconds since 1970; null when there is none. */
  heldUntilMs: number | null;
}

/** What dispatchers tell about endpoints that they treat otherwise than a new one. */
export interface EndpointFlows {
  /** Null when nothing was told in the last minutes. Rejects without Redis. */
  read: (webhookId: string) => Promise<EndpointFlow | null>;
  /** Pauses that have not ended, by webhook id. Rejects without Redis. */
  readHeld: () => Promise<Map<string, number>>;
  /** Told and not waited for: without Redis the flow stands where it is. */
  tell: (flows: ReadonlyMap<string, EndpointFlow>) => void;
  held: (webhookId: string, untilMs: number) => void;
}

const flowSchema = z.object({
  concurrency: z.number(),
  ratePerSecond: z.number().nullable(),
  heldUntilMs: z.number().nullable(),
});

/** Dispatchers tell again in time; what one that died has told goes by itself. */
export const TOLD_FOR_MS = 180_000;
const HELD_KEY = 'endpoint-holds';

/** One key for each flow, which Redis forgets by itself; one hash of the pauses, for a new owner to read. */
export function createEndpointFlows(
  redis: Redis,
  prefix: string,
  nowMs: () => number,
): EndpointFlows {
  const keyOf = (webhookId: string): string => `${prefix}endpoint-flow:${webhookId}`;
  const heldKey = prefix + HELD_KEY;
  const tell = (told: Promise<unknown>): void => void told.catch(() => undefined);
  return {
    async read(webhookId) {
      const text = await redis.get(keyOf(webhookId));
      return text === null ? null : flowSchema.parse(JSON.parse(text));
    },
    async readHeld() {
      const all = Object.entries(await redis.hgetall(heldKey)).map(
        ([id, text]): [string, number] => [id, Number(text)],
      );
      const over = all.filter(([, untilMs]) => untilMs <= nowMs()).map(([id]) => id);
      if (over.length > 0) tell(redis.hdel(heldKey, ...over));
      return new Map(all.filter(([, untilMs]) => untilMs > nowMs()));
    },
    tell(flows) {
      const commands = redis.pipeline();
      for (const [id, flow] of flows) {
        commands.set(keyOf(id), JSON.stringify(flow), 'PX', TOLD_FOR_MS);
      }
      tell(commands.exec());
    },
    held(webhookId, untilMs) {
      tell(redis.hset(heldKey, webhookId, String(untilMs)));
    },
  };
}
