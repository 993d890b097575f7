import type { Logger } from '../../service/logger.ts';
import type { GroupPosition, GroupPositions } from '../offsets/group-positions.ts';
import type { Readiness } from '../record-log.ts';
import { keyOf, type TopicPartition } from '../topic-partition.ts';
import type { PartitionEnd, UnreadRecords } from './unread-records.ts';

interface FollowingConsumer extends Pick<UnreadRecords, 'mayBeDue' | 'noteEnds'> {
  assigned: () => TopicPartition[];
}

interface FollowEndsDeps {
  positions: Pick<GroupPositions, 'read' | 'endsBefore'>;
  consumer: () => FollowingConsumer;
  readiness: Readiness;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Returns a function that reads the positions of the consumer's partitions and reports to it where they
 * end. It asks for the due end of a delay topic only where the next record may be due: not while all wait.
 */
export function createFollowEnds(deps: FollowEndsDeps): () => Promise<GroupPosition[]> {
  return async () => {
    const positions = await deps.positions.read(deps.consumer().assigned());
    const assigned = new Set(deps.consumer().assigned().map(keyOf));
    await noteEnds(
      deps,
      positions.filter((position) => assigned.has(keyOf(position))),
    ).catch((error: unknown) => {
      deps.logger.warn({ err: error }, 'cannot read how many records are due');
    });
    return positions;
  };
}

async function noteEnds(deps: FollowEndsDeps, owned: readonly GroupPosition[]): Promise<void> {
  const { consumer, readiness, nowMs } = deps;
  const behind = owned.filter((position) => position.lag > 0);
  const unread = owned.filter(({ topic }) => readiness.afterMs(topic) === 0);
  consumer().noteEnds(unread.map(toEnd), nowMs());
  for (const topic of new Set(behind.map((position) => position.topic))) {
    if (readiness.afterMs(topic) === 0) continue;
    const mayBeDue = behind.filter(
      (position) => position.topic === topic && consumer().mayBeDue(position, nowMs()),
    );
    if (mayBeDue.length > 0) await noteDue(deps, topic, mayBeDue);
  }
}

async function noteDue(
  { positions, consumer, readiness, nowMs }: FollowEndsDeps,
  topic: string,
  mayBeDue: readonly GroupPosition[],
): Promise<void> {
  const atMs = nowMs();
  // Written a delay ago is due now.
  const due = await positions.endsBefore(
    topic,
    atMs - readiness.afterMs(topic) + 1,
    mayBeDue.map(({ partition }) => partition),
  );
  const ends = mayBeDue.map((position) => ({
    ...toEnd(position),
    endOffset: due.get(position.partition) ?? 0,
  }));
  consumer().noteEnds(ends, atMs);
}

function toEnd({ topic, partition, lag, endOffset }: GroupPosition): PartitionEnd {
  return { topic, partition, committed: endOffset - lag, endOffset };
}
