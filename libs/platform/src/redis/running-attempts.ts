import type { Redis } from 'ioredis';

/** Attempts under way, for a dispatcher that takes over records which another one may still work on. */
export interface RunningAttempts {
  /** Told and not waited for; forgotten after `ttlMs`, in case nobody withdraws them. */
  announce: (attemptIds: readonly string[], ttlMs: number) => void;
  withdraw: (attemptIds: readonly string[]) => void;
  /** Which of these others have announced. Rejects without Redis. */
  among: (attemptIds: readonly string[]) => Promise<Set<string>>;
}

/** `instanceId` names this process: what it announced itself it does not find. */
export function createRunningAttempts(
  redis: Redis,
  prefix: string,
  instanceId: string,
): RunningAttempts {
  const keyOf = (attemptId: string): string => `${prefix}running:${attemptId}`;
  const tell = (told: Promise<unknown>): void => void told.catch(() => undefined);
  return {
    announce(attemptIds, ttlMs) {
      const pipeline = redis.pipeline();
      for (const id of attemptIds) pipeline.set(keyOf(id), instanceId, 'PX', ttlMs);
      tell(pipeline.exec());
    },
    withdraw: (attemptIds) => {
      tell(redis.del(attemptIds.map(keyOf)));
    },
    async among(attemptIds) {
      const found = await redis.mget(attemptIds.map(keyOf));
      const isForeign = (holder: string | null | undefined): boolean =>
        typeof holder === 'string' && holder !== instanceId;
      return new Set(attemptIds.filter((_, index) => isForeign(found[index])));
    },
  };
}
