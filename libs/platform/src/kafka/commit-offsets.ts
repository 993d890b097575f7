import type { Consumer } from 'kafkajs';
import type { Logger } from '../logger.ts';
import type { KafkaMetrics } from './kafka-metrics.ts';
import type { PartitionWindow } from './partition-window.ts';

export interface CommitDeps {
  consumer: Consumer;
  offsets: PartitionWindow;
  logger: Logger;
  metrics: KafkaMetrics;
  state: { isRunning: boolean };
}

export interface Commits {
  /** Waits for the commit under way and makes a last one. */
  stop: () => Promise<void>;
}

const EVERY_MS = 250;

/** Commits what is contiguously finished, four times a second, one commit at a time. */
export function startCommits(deps: CommitDeps): Commits {
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    // A slow broker must not be asked again before it has answered.
    running ??= commit(deps).finally(() => {
      running = null;
    });
  }, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await running;
      await commit(deps);
    },
  };
}

async function commit({ consumer, offsets, logger, metrics, state }: CommitDeps): Promise<void> {
  const commits = offsets.uncommitted();
  if (commits.length === 0 || !state.isRunning) return;
  try {
    await consumer.commitOffsets(
      commits.map(({ topic, partition, offset }) => ({ topic, partition, offset: String(offset) })),
    );
    offsets.markCommitted(commits);
  } catch (error) {
    metrics.commitFailures.inc();
    logger.warn({ err: error }, 'commit failed, the next one covers it');
  }
}
