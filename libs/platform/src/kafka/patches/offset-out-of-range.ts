import { createRequire } from 'node:module';
import { rebalanceError } from './joins.ts';
import { committedTopicId, wasMadeAgain } from './topic-ids.ts';

interface TopicPartition {
  topic: string;
  partition: number;
}

/** The part of kafkajs's offset manager, one for each generation of a group, that is used here. */
interface OffsetManager {
  groupId: string;
  generationId: number;
  memberId: string;
  cluster: Parameters<typeof wasMadeAgain>[0]['cluster'] & {
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

type Listener = (found: OutOfRange) => void;

/** Group id → cluster → listener. */
const listeners = new Map<string, Map<string, Listener>>();

/**
 * Makes a group read on from the end that is left where a partition has lost its end, and from the beginning that is left
 * where its retention has removed what was wanted. The listener of each cluster in which the group has members is called.
 */
export function readOnFromWhatIsLeft(groupId: string, cluster: string, listener: Listener): void {
  const ofGroup = listeners.get(groupId) ?? new Map<string, Listener>();
  listeners.set(groupId, ofGroup.set(cluster, listener));
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
    const ofGroup = listeners.get(this.groupId);
    if (!ofGroup) {
      await setDefaultOffset.call(this, { topic, partition });
      return;
    }
    await this.cluster.refreshMetadata();
    // The member joins again, and finds that nothing of this topic is committed.
    if (wasMadeAgain(this, topic)) throw rebalanceError();
    const wantedOffset = Number(this.nextOffset(topic, partition).toString());
    const [beginning, end] = await Promise.all(
      [true, false].map((fromBeginning) => offsetAt(this, { topic, partition, fromBeginning })),
    );
    const hasLostItsEnd = wantedOffset >= (beginning ?? 0);
    // Records that came meanwhile may have the wanted offset again: whatever was before them is not read twice.
    const nextOffset = Math.min(Math.max(wantedOffset, beginning ?? 0), end ?? 0);
    const { groupId, generationId: groupGenerationId, memberId } = this;
    const metadata = committedTopicId(this, topic);
    const topics = [{ topic, partitions: [{ partition, offset: String(nextOffset), metadata }] }];
    const coordinator = await this.getCoordinator();
    await coordinator.offsetCommit({ groupId, memberId, groupGenerationId, topics });
    this.clearOffsets({ topic, partition });
    for (const listener of ofGroup.values()) {
      listener({ topic, partition, wantedOffset, nextOffset, hasLostItsEnd });
    }
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
