import type { RedisClient } from '../connect.ts';

/** As long as a connection may stand on which nothing arrives (connect.ts). */
const READ_FOR_MS = 5_000;
/** What ioredis says when the command timeout ends. */
const LATE = 'Command timed out';

/**
 * Reads again while replies are late and the connection stands, for five seconds. On a full machine it is this
 * process that is late: the timer of the command ends before its reply is read. What others have stored must not
 * count as unknown then. Rejects at once with any other error.
 */
export async function readUntilAnswered<Value>(
  redis: Pick<RedisClient, 'status'>,
  read: () => Promise<Value>,
  monotonicMs = (): number => performance.now(),
): Promise<Value> {
  const endsAtMs = monotonicMs() + READ_FOR_MS;
  for (;;) {
    try {
      return await read();
    } catch (error) {
      const isLate = error instanceof Error && error.message === LATE;
      if (!isLate || redis.status !== 'ready' || monotonicMs() >= endsAtMs) throw error;
    }
  }
}
