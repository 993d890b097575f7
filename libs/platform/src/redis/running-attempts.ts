import type { Redis } from 'ioredis';

/** Attempts under way, so that two processes that read the same one do not both make it. */
export interface RunningAttempts {
  /** Told and not waited for; forgotten after `ttlMs` unless it is told again. */
  announce: (attemptIds: readonly string[], ttlMs: number) => void;
  withdraw: (attemptIds: readonly string[]) => void;
  /** Announces those that no other process has announced, and answers them. Rejects without Redis. */
  claim: (attemptIds: readonly string[], ttlMs: number) => Promise<Set<string>>;
}

/** `instanceId` names this process: what it announced itself it may claim. */
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
    async claim(attemptIds, ttlMs) {
      const pipeline = redis.pipeline();
      for (const id of attemptIds) pipeline.set(keyOf(id), instanceId, 'PX', ttlMs, 'NX');
      await pipeline.exec();
      const holders = await redis.mget(attemptIds.map(keyOf));
      // Nobody holds one where Redis reads and does not write (out of memory, a failed save).
      const isFree = (index: number): boolean => (holders[index] ?? instanceId) === instanceId;
      return new Set(attemptIds.filter((_, index) => isFree(index)));
    },
  };
}
