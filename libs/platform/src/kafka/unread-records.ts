import type { Logger } from '../service/logger.ts';
import type { GroupPosition, GroupPositions } from './offsets/group-positions.ts';
import {
  createIsAssigned,
  keyOf,
  type Readiness,
  type ReadyRecords,
  type TopicPartition,
} from './record-log.ts';

/** A batch whose records before `nextOffset` were begun. */
export interface TakenBatch extends TopicPartition {
  /** The offset of the first record that was not begun. */
  nextOffset: number;
  /** The offset after the last record of the partition. */
  endOffset: number;
  /** When the record at `nextOffset` became ready, or will; when the batch lacks it, the time of its last record. */
  nextSinceMs: number;
}

/** The end of a partition as the broker reports it; for a delay topic, the end of the due records. */
export interface PartitionEnd extends TopicPartition {
  /** The offset that the group would read next. */
  committed: number;
  endOffset: number;
}

/** The records of a member's partitions that it has not begun. */
export interface UnreadRecords {
  noteBatch: (batch: TakenBatch) => void;
  /** Counts the records from this offset on again; the first one became ready at `sinceMs`. */
  giveBack: (from: TopicPartition & { nextOffset: number; sinceMs: number }) => void;
  /** Adds records that no batch shows: a partition that is paused is not fetched. */
  noteEnds: (ends: readonly PartitionEnd[], nowMs: number) => void;
  /**
   * Returns true unless the next record is known and not due yet. Only for these partitions of a delay topic
   * the broker can report due records.
   */
  mayBeDue: (partition: TopicPartition, nowMs: number) => boolean;
  /** Forgets every partition that is not in `assignment`. */
  retainOnly: (assignment: Readonly<Record<string, number[]>>) => void;
  /** By topic. A process may have thousands of topics: each partition is looked at once. */
  ready: (nowMs: number) => ReadonlyMap<string, ReadyRecords>;
}

interface Unread extends TopicPartition {
  nextOffset: number;
  /** For a delay topic: the offset after the last record that is known to be due. */
  endOffset: number;
  /** When the record at `nextOffset` became ready, or will; null when there is none. */
  sinceMs: number | null;
}

/** The records of a topic for which `isDelayTopic` is true may be unread and not ready. */
export function createUnreadRecords(isDelayTopic: (topic: string) => boolean): UnreadRecords {
  const partitions = new Map<string, Unread>();
  return {
    noteBatch({ topic, partition, nextOffset, endOffset, nextSinceMs }) {
      const key = keyOf({ topic, partition });
      const sinceMs = nextOffset < endOffset ? nextSinceMs : null;
      // The record at `nextOffset` counts once it is due; only the broker knows how many behind it are due.
      const knownDue = Math.max(partitions.get(key)?.endOffset ?? 0, nextOffset + 1);
      const end = isDelayTopic(topic) ? Math.min(endOffset, knownDue) : endOffset;
      partitions.set(key, { topic, partition, nextOffset, endOffset: end, sinceMs });
    },
    giveBack({ topic, partition, nextOffset, sinceMs }) {
      const known = partitions.get(keyOf({ topic, partition }));
      if (known) Object.assign(known, { nextOffset, sinceMs });
    },
    noteEnds(ends, nowMs) {
      for (const { topic, partition, committed, endOffset } of ends) {
        const key = keyOf({ topic, partition });
        const known = partitions.get(key);
        const nextOffset = known?.nextOffset ?? committed;
        // A batch may have shown more since the broker answered.
        const newEnd = Math.max(endOffset, known?.endOffset ?? 0);
        // The time when a record was first seen is a lower bound of its age, which the next fetch corrects.
        const sinceMs = newEnd > nextOffset ? (known?.sinceMs ?? nowMs) : null;
        partitions.set(key, { topic, partition, nextOffset, endOffset: newEnd, sinceMs });
      }
    },
    mayBeDue(partition, nowMs) {
      const sinceMs = partitions.get(keyOf(partition))?.sinceMs ?? null;
      return sinceMs === null || sinceMs <= nowMs;
    },
    retainOnly(assignment) {
      const isAssigned = createIsAssigned(assignment);
      for (const [key, unread] of partitions) if (!isAssigned(unread)) partitions.delete(key);
    },
    ready(nowMs) {
      const byTopic = new Map<string, ReadyRecords>();
      for (const { topic, nextOffset, endOffset, sinceMs } of partitions.values()) {
        if (sinceMs === null || sinceMs > nowMs) continue;
        const ready = byTopic.get(topic) ?? { records: 0, oldestMs: Infinity };
        ready.records += Math.max(0, endOffset - nextOffset);
        ready.oldestMs = Math.min(ready.oldestMs, sinceMs);
        byTopic.set(topic, ready);
      }
      return byTopic;
    },
  };
}

interface FollowEndsDeps {
  positions: Pick<GroupPositions, 'read' | 'endsBefore'>;
  consumer: () => {
    assigned: () => TopicPartition[];
    unread: Pick<UnreadRecords, 'mayBeDue' | 'noteEnds'>;
  };
  readiness: Readiness;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
}

/**
 * Returns a function that reads the positions of the consumer's partitions and notes their ends. It requests the
 * end of the due records of a delay topic only where the next record may be due: not while all wait.
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
  const { readiness, nowMs } = deps;
  const { unread } = deps.consumer();
  const behind = owned.filter((position) => position.lag > 0);
  const ready = owned.filter(({ topic }) => readiness.afterMs(topic) === 0);
  unread.noteEnds(ready.map(toEnd), nowMs());
  for (const topic of new Set(behind.map((position) => position.topic))) {
    if (readiness.afterMs(topic) === 0) continue;
    const mayBeDue = behind.filter(
      (position) => position.topic === topic && unread.mayBeDue(position, nowMs()),
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
  // A record that was written a delay ago is due now.
  const due = await positions.endsBefore(
    topic,
    atMs - readiness.afterMs(topic) + 1,
    mayBeDue.map(({ partition }) => partition),
  );
  const ends = mayBeDue.map((position) => ({
    ...toEnd(position),
    endOffset: due.get(position.partition) ?? 0,
  }));
  consumer().unread.noteEnds(ends, atMs);
}

function toEnd({ topic, partition, lag, endOffset }: GroupPosition): PartitionEnd {
  return { topic, partition, committed: endOffset - lag, endOffset };
}

/** A record is ready as soon as it is written. */
export const READY_WHEN_WRITTEN: Readiness = {
  sinceMs: ({ timestampMs }) => timestampMs,
  afterMs: () => 0,
};
