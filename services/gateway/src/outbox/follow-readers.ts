import type { ReadingPositions } from '@posthorn/platform/redis/reading-positions.ts';
import type { PublishBudget } from './publish-budget.ts';

interface FollowReadersDeps {
  budget: Pick<PublishBudget, 'isReadDue' | 'partitions' | 'noteRead'>;
  positions: Pick<ReadingPositions, 'read'>;
  releaseWaiting: () => void;
  nowMs: () => number;
}

/** A late reply does not end the budgets: in this time one gateway could publish 80,000 records. */
const WITHOUT_REPLY_MS = 2_000;

/** Returns a function that reads how far the dispatchers are, and goes on with the companies that have room again. */
export function createFollowReaders(deps: FollowReadersDeps): () => Promise<void> {
  const { budget, positions, releaseWaiting, nowMs } = deps;
  let repliedAtMs = nowMs();
  return async () => {
    if (!budget.isReadDue()) {
      repliedAtMs = nowMs();
      return;
    }
    try {
      budget.noteRead(await positions.read(budget.partitions()));
      repliedAtMs = nowMs();
    } catch {
      // Redis is away, which its client has logged.
      if (nowMs() - repliedAtMs >= WITHOUT_REPLY_MS) budget.noteRead(null);
    }
    releaseWaiting();
  };
}
