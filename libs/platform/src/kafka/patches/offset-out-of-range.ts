import { createRequire } from 'node:module';

interface TopicPartition {
  topic: string;
  partition: number;
}

/** The part of kafkajs's offset manager, one for each generation of a group, that is used here. */
interface OffsetManager {
  groupId: string;
  generationId: number;
  memberId: string;
  cluster: {
    fetchTopicsOffset: (topics: object[]) => Promise<FoundOffsets[]>;
  };
  nextOffset: (topic: string, partition: number) => { toString: () => string };
  setDefaultOffset: (of: TopicPartition) => Promise<void>;
  getCoordinator: () => Promise<{ offsetCommit: (request: object) => Promise<unknown> }>;
  clearOffsets: (of: TopicPartition) => void;
}

interface FoundOffsets {
  topic: string;
  partitions: { partition: number; offset: string }[];
}

/** A partition that does not have the offset which a group wanted to read. */
export interface OutOfRange extends TopicPartition {
  wantedOffset: number;
  /** Where the group reads on: the beginning or the end of what is left. */
  nextOffset: number;
  /** The partition ends before what the group has read: records after that may never be read. */
  hasLostItsEnd: boolean;
}

const listeners = new Map<string, (found: OutOfRange) => void>();

/**
 * Makes a group read on from the end that is left where a partition has lost its end, and from the beginning that is left
 * where its retention has removed what was wanted; `listener` is called each time.
 */
export function readOnFromWhatIsLeft(groupId: string, listener: (found: OutOfRange) => void): void {
  listeners.set(groupId, listener);
}

/**
 * Kafkajs 2.2.4 begins anew where `fromBeginning` says, whenever a partition does not have the offset that it wants. A
 * partition that has lost its end, by an unclean election or from a backup, would be read whole again. After the patch a group
 * with a listener reads on from the end that is left. For Posthorn's own topics the beginning is right: what was handled
 * is known, and nothing may be skipped.
 */
export function patchOffsetOutOfRange(): void {
  const require = createRequire(import.meta.url);
  const { prototype } = require('kafkajs/src/consumer/offsetManager/index.js') as {
    prototype: OffsetManager;
  };
  const { setDefaultOffset } = prototype;
  prototype.setDefaultOffset = async function (this: OffsetManager, { topic, partition }) {
    const listener = listeners.get(this.groupId);
    if (!listener) {
      await setDefaultOffset.call(this, { topic, partition });
      return;
    }
    const wantedOffset = Number(this.nextOffset(topic, partition).toString());
    const [beginning, end] = await Promise.all(
      [true, false].map((fromBeginning) => offsetAt(this, { topic, partition, fromBeginning })),
    );
    const hasLostItsEnd = wantedOffset > (end ?? 0);
    const nextOffset = (hasLostItsEnd ? end : beginning) ?? 0;
    const { groupId, generationId: groupGenerationId, memberId } = this;
    const topics = [{ topic, partitions: [{ partition, offset: String(nextOffset) }] }];
    const coordinator = await this.getCoordinator();
    await coordinator.offsetCommit({ groupId, memberId, groupGenerationId, topics });
    this.clearOffsets({ topic, partition });
    listener({ topic, partition, wantedOffset, nextOffset, hasLostItsEnd });
  };
}

async function offsetAt(
  { cluster }: OffsetManager,
  { topic, partition, fromBeginning }: TopicPartition & { fromBeginning: boolean },
): Promise<number> {
  const found = await cluster.fetchTopicsOffset([
    { topic, partitions: [{ partition }], fromBeginning },
  ]);
  return Number(found[0]?.partitions[0]?.offset ?? 0);
}
