import { createLoop } from '../../async/loop.ts';
import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { Commit, OwnedPartitions } from './owned-partitions.ts';

/** Sends a commit once, for the generation of the group that it was made for. */
export type SendCommit = (commits: readonly Commit[]) => Promise<void>;

interface OffsetCommitterDeps {
  offsets: OwnedPartitions;
  logger: Logger;
  metrics: KafkaMetrics;
  /** How the batches read now may be committed; null while the consumer is not in its group. */
  currentCommit: () => SendCommit | null;
  onCommitted: () => void;
}

export interface OffsetCommitter {
  start: () => void;
  /** Commits what is finished by now. Never rejects. */
  commitNow: () => Promise<void>;
  /** Waits for the commit that runs, and makes a last one. */
  stop: () => Promise<void>;
  /** Begins no further commit. */
  cancel: () => void;
}

const EVERY_MS = 250;

/** Commits what is contiguously finished, four times a second, one commit at a time. */
export function createOffsetCommitter(deps: OffsetCommitterDeps): OffsetCommitter {
  const { logger } = deps;
  const loop = createLoop({
    name: 'offset commits',
    everyMs: EVERY_MS,
    run: () => commit(deps),
    logger,
  });
  return {
    start: loop.start,
    async commitNow() {
      // The first may be one that runs already.
      await loop.tick();
      await loop.tick();
    },
    async stop() {
      await loop.stop();
      await commit(deps);
    },
    cancel: () => void loop.stop(),
  };
}

async function commit({
  offsets,
  logger,
  metrics,
  currentCommit,
  onCommitted,
}: OffsetCommitterDeps): Promise<void> {
  const commits = offsets.uncommitted();
  const send = currentCommit();
  if (commits.length === 0 || !send) return;
  const startedMs = performance.now();
  try {
    await send(commits);
    metrics.operations.succeeded('commit', performance.now() - startedMs);
    offsets.markCommitted(commits);
    onCommitted();
  } catch (error) {
    metrics.commitFailures.inc();
    metrics.operations.failed('commit', performance.now() - startedMs);
    logger.warn({ err: error }, 'a commit failed, the next one covers it');
  }
}
