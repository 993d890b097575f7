import {
  createPartitionWindow,
  type OwnedPartition,
  type PartitionWindow,
} from '@posthorn/platform/kafka/positions/partition-window.ts';

/** A window, and what a member does with it. */
export interface WorkedWindow {
  window: PartitionWindow;
  /** A batch that the window takes, in a partition that ends at `endOffset`. */
  arrive: (
    topic: string,
    partition: number,
    firstOffset: number,
    endOffset?: number,
  ) => OwnedPartition;
  /** Takes a batch of these offsets and finishes some of them. */
  work: (
    topic: string,
    partition: number,
    begun: number[],
    finished: number[],
  ) => OwnedPartition['offsets'];
  commit: () => void;
}

export function createWorkedWindow(): WorkedWindow {
  const window = createPartitionWindow();
  const arrive: WorkedWindow['arrive'] = (topic, partition, firstOffset, endOffset = 100) => {
    const owned = window.arrive(topic, partition, { firstOffset, endOffset });
    if (!owned) throw new Error('the batch was left unread');
    return owned;
  };
  return {
    window,
    arrive,
    work(topic, partition, begun, finished) {
      const { offsets } = arrive(topic, partition, begun[0] ?? 0);
      for (const offset of begun) offsets.begin(offset);
      for (const offset of finished) offsets.finish(offset);
      return offsets;
    },
    commit() {
      window.markCommitted(window.uncommitted());
    },
  };
}
