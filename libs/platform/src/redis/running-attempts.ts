import { readAll, removeAll, sendAll, type RedisCommand } from './commands.ts';
import type { RedisClient } from './connect.ts';

/** The attempts that are being made, so that two processes that read the same record do not both make it. */
export interface RunningAttempts {
  /** Announces attempts of this process for `ttlMs`, without waiting for Redis. */
  announce: (attemptIds: readonly string[], ttlMs: number) => void;
  /** Ends announcements of this process, without waiting for Redis. */
  withdraw: (attemptIds: readonly string[]) => void;
  /**
   * Announces the attempts that no other process has announced, and returns them. Waits for a late reply; rejects
   * without Redis.
   */
  claim: (attemptIds: readonly string[], ttlMs: number) => Promise<Set<string>>;
}

/** A claim that took longer than this is announced anew: its time has run since it was sent. */
const LATE_MS = 500;

/** `instanceId` names this process, which may claim what it announced itself. */
export function createRunningAttempts(
  redis: RedisClient,
  prefix: string,
  instanceId: string,
): RunningAttempts {
  const keyOf = (attemptId: string): string => `${prefix}running:${attemptId}`;
  const ignoreFailure = (command: Promise<unknown>): void => void command.catch(() => undefined);
  const announce: RunningAttempts['announce'] = (attemptIds, ttlMs) => {
    const toCommand = (id: string): RedisCommand => ['set', keyOf(id), instanceId, 'PX', ttlMs];
    ignoreFailure(sendAll(redis, attemptIds.map(toCommand)));
  };
  return {
    announce,
    withdraw: (attemptIds) => {
      ignoreFailure(removeAll(redis, attemptIds.map(keyOf)));
    },
    async claim(attemptIds, ttlMs) {
      const startedAtMs = performance.now();
      const toCommand = (id: string): RedisCommand => [
        'set',
        keyOf(id),
        instanceId,
        'PX',
        ttlMs,
        'NX',
      ];
      await sendAll(redis, attemptIds.map(toCommand));
      const holders = await readAll(redis, attemptIds.map(keyOf));
      // When Redis refuses writes (out of memory, a failed save), an attempt has no holder.
      const isFree = (index: number): boolean => (holders[index] ?? instanceId) === instanceId;
      const claimed = attemptIds.filter((_, index) => isFree(index));
      if (performance.now() - startedAtMs > LATE_MS) announce(claimed, ttlMs);
      return new Set(claimed);
    },
  };
}
