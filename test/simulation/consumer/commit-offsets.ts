import type { Commit } from '@posthorn/platform/kafka/offsets/owned-partitions.ts';
import type { SimulatedConsumer } from './consumer-state.ts';
import { keyOf } from '../infrastructure/simulated-kafka.ts';

/** As in group-consumer.ts of the platform. */
const COMMIT_MS = 250;

export function scheduleCommit(consumer: SimulatedConsumer): void {
  if (consumer.isCommitting) return;
  consumer.isCommitting = true;
  consumer.world.time.after(COMMIT_MS, () => {
    consumer.isCommitting = false;
    if (consumer.process.isAlive()) void commit(consumer);
  });
}

/** Like `#commit` in group-consumer.ts of the platform. A commit of an earlier generation is refused. */
async function commit(consumer: SimulatedConsumer): Promise<void> {
  const { batches, process, generation, topics } = consumer;
  const commits = batches.offsets.uncommitted();
  if (commits.length === 0) return;
  consumer.isCommitting = true;
  let isRefused = false;
  const send = process.request({
    what: `commit ${commits.map((each) => `${keyOf(each)}:${each.offset}`).join(' ')}`,
    effects: [() => (isRefused = !storeCommits(consumer, generation, commits))],
    respond: () => undefined,
    noResponse: () => new Error('the coordinator did not respond'),
  });
  const isStored = await send.then(
    () => !isRefused,
    () => false,
  );
  consumer.isCommitting = false;
  if (!isStored) {
    scheduleCommit(consumer);
    return;
  }
  batches.offsets.markCommitted(commits);
  dropCommitted(consumer, commits);
  for (const topic of topics) batches.resumeReading(topic);
  scheduleCommit(consumer);
}

/** Returns false if the generation is outdated. */
function storeCommits(
  { group, observer }: SimulatedConsumer,
  generation: number,
  commits: readonly Commit[],
): boolean {
  if (generation !== group.generation) return false;
  for (const each of commits) {
    observer.onCommit(group, each);
    group.committed.set(keyOf(each), each.offset);
  }
  return true;
}

function dropCommitted(
  { uncommittedRecords }: SimulatedConsumer,
  commits: readonly Commit[],
): void {
  for (const { offset, ...topicPartition } of commits) {
    const rest =
      uncommittedRecords.get(keyOf(topicPartition))?.filter((record) => record.offset >= offset) ??
      [];
    uncommittedRecords.set(keyOf(topicPartition), rest);
  }
}
