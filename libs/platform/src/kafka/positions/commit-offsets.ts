import type { Logger } from '../../service/logger.ts';
import type { KafkaMetrics } from '../kafka-metrics.ts';
import type { Commit, PartitionWindow } from './partition-window.ts';

/** Sends a commit once, for the generation of the group that it was called in. */
export type SendCommit = (commits: readonly Commit[]) => Promise<void>;

export interface CommitDeps {
  offsets: PartitionWindow;
  logger: Logger;
  metrics: KafkaMetrics;
  /** How the batches of now may be committed; null while the consumer is out of its group. */
  sender: () => SendCommit | null;
  onCommitted: () => void;
}

export interface Commits {
  start: () => void;
  /** Waits for the commit under way and makes a last one. */
  stop: () => Promise<void>;
  /** Commits nothing more. */
  cancel: () => void;
}

const EVERY_MS = 250;

/** Commits what is contiguously finished, four times a second, one commit at a time. */
export function createCommits(deps: CommitDeps): Commits {
  let running: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      timer = setInterval(() => {
        // A slow broker must not be asked again before it has answered.
        running ??= commit(deps).finally(() => {
          running = null;
        });
      }, EVERY_MS);
    },
    async stop() {
      clearInterval(timer);
      await running;
      await commit(deps);
    },
    cancel: () => {
      clearInterval(timer);
    },
  };
}

async function commit({ offsets, logger, metrics, sender, onCommitted }: CommitDeps) {
  const commits = offsets.uncommitted();
  const send = sender();
  if (commits.length === 0 || !send) return;
  try {
    await send(commits);
    offsets.markCommitted(commits);
    onCommitted();
  } catch (error) {
    metrics.commitFailures.inc();
    logger.warn({ err: error }, 'commit failed, the next one covers it');
  }
}
