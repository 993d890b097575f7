import {
  createOwnedPartitions,
  type OwnedPartition,
  type OwnedPartitions,
  readOn,
} from '@posthorn/platform/kafka/offsets/owned-partitions.ts';

/** Owned partitions, with what a consumer does with them. */
export interface WorkedPartitions {
  partitions: OwnedPartitions;
  /** Returns the partition of a batch; it ends at `endOffset`. Throws when the batch is skipped. */
  ofBatch: (
    topic: string,
    partition: number,
    firstOffset: number,
    endOffset?: number,
  ) => OwnedPartition;
  /** Begins a batch of these offsets and finishes some of them. */
  work: (
    topic: string,
    partition: number,
    begun: number[],
    finished: number[],
  ) => OwnedPartition['offsets'];
  commit: () => void;
}

export function createWorkedPartitions(): WorkedPartitions {
  const partitions = createOwnedPartitions(() => 0);
  const ofBatch: WorkedPartitions['ofBatch'] = (topic, partition, firstOffset, endOffset = 100) => {
    const owned = partitions.ofBatch(topic, partition, { firstOffset, endOffset });
    if (!owned) throw new Error('the batch was skipped');
    return owned;
  };
  return {
    partitions,
    ofBatch,
    work(topic, partition, begun, finished) {
      const owned = ofBatch(topic, partition, begun[0] ?? 0);
      const { offsets } = owned;
      for (const offset of begun) offsets.begin(offset);
      readOn(owned, (begun.at(-1) ?? 0) + 1);
      for (const offset of finished) offsets.finish(offset);
      return offsets;
    },
    commit() {
      partitions.markCommitted(partitions.uncommitted());
    },
  };
}
