import { createRequire } from 'node:module';
import { rebalanceError } from './joins.ts';
import { type MetadataResponse, topicIdOf } from './metadata.ts';

/** The part of kafkajs's offset manager, one for each generation of a group, that is used here. */
interface OffsetManager {
  cluster: Cluster;
  topics: readonly string[];
  getCoordinator: () => Promise<Coordinator>;
  resolveOffsets: () => Promise<void>;
  commitOffsets: (offsets?: { topics?: CommittedTopic[] }) => Promise<void>;
}

interface Cluster {
  /** `metadata` is the newest response; null before the first. */
  brokerPool: { metadata: Pick<MetadataResponse, 'clusterId' | 'topicMetadata'> | null };
  refreshMetadata: () => Promise<unknown>;
}

/** The part of kafkajs's consumer group, one for each run of a consumer, that is used here. */
interface ConsumerGroup {
  cluster: Cluster;
  fetch: (nodeId: string) => Promise<unknown>;
  recoverFromFetch: (error: Error & { type?: string }) => Promise<void>;
}

interface Coordinator {
  offsetFetch: (request: object) => Promise<{ responses: CommittedTopic[] }>;
}

interface CommittedTopic {
  topic: string;
  partitions: { partition: number; offset: string; metadata?: string | null }[];
}

const require = createRequire(import.meta.url);

/** The offset that kafkajs reads as "nothing committed". */
const NO_OFFSET = '-1';

/** By the offset manager: the ids of its topics when it read what is committed. */
const idsOf = new WeakMap<object, TopicIds>();

/** By topic: its cluster and id, since offsets may be copied to another cluster. Empty where the broker has no ids. */
type TopicIds = ReadonlyMap<string, string>;

/** Returns the id that commits of the topic have; empty where it has none. */
export const committedTopicId = (manager: object, topic: string): string =>
  idsOf.get(manager)?.get(topic) ?? '';

/** Returns true when the client has read meanwhile that the topic is another one. */
export function wasMadeAgain(manager: Pick<OffsetManager, 'cluster'>, topic: string): boolean {
  return isAnother(committedTopicId(manager, topic), idsIn(manager.cluster).get(topic));
}

/** Returns false unless both are ids of one cluster. */
function isAnother(before: string | null | undefined, now: string | undefined): boolean {
  if (!before || !now || before === now) return false;
  const clusterIn = (id: string): string => id.slice(0, id.lastIndexOf('/') + 1);
  return clusterIn(before) === clusterIn(now);
}

/** By the response that has them: a process may read thousands of topics, and compares their ids before each fetch. */
const idsByResponse = new WeakMap<object, TopicIds>();

function idsIn({ brokerPool: { metadata } }: Pick<Cluster, 'brokerPool'>): TopicIds {
  if (metadata === null) return new Map();
  const before = idsByResponse.get(metadata);
  if (before) return before;
  const { clusterId, topicMetadata } = metadata;
  const ids = new Map(
    topicMetadata.flatMap(({ topic, partitionMetadata }) => {
      const id = topicIdOf(partitionMetadata);
      return id === '' ? [] : [[topic, `${clusterId ?? ''}/${id}`] as const];
    }),
  );
  idsByResponse.set(metadata, ids);
  return ids;
}

/**
 * Kafkajs 2.2.4 knows topics by their names. One that was deleted and made again is read on at the offset of the old one, and the
 * records before it never. After the patch each commit says, in its metadata, of which topic it is (KIP-516), and a commit of
 * another topic of this name counts as none: the group begins as with a new topic. Needs the ids of `patchMetadata`.
 */
export function patchTopicIds(): void {
  patchOffsetManager();
  patchConsumerGroup();
}

/** Commits of another topic of this name count as none. */
function patchOffsetManager(): void {
  const { prototype } = require('kafkajs/src/consumer/offsetManager/index.js') as {
    prototype: OffsetManager;
  };
  const { resolveOffsets, commitOffsets } = prototype;
  prototype.resolveOffsets = async function (this: OffsetManager) {
    // kafkajs calls this before each fetch. The ids stay those of the first call: an offset of the old topic must not be
    // committed with the id of the new one.
    if (this.topics.some((topic) => wasMadeAgain(this, topic))) throw rebalanceError();
    const ids = idsOf.get(this) ?? idsIn(this.cluster);
    idsOf.set(this, ids);
    const coordinator = await this.getCoordinator();
    const offsetFetch: Coordinator['offsetFetch'] = async (request) => {
      const response = await coordinator.offsetFetch(request);
      return { ...response, responses: response.responses.map((each) => ofSameTopic(each, ids)) };
    };
    // Its changes are made to objects that both share.
    await resolveOffsets.call(
      Object.assign(Object.create(this), {
        getCoordinator: () => Promise.resolve({ offsetFetch }),
      }),
    );
  };
  prototype.commitOffsets = function (this: OffsetManager, offsets) {
    const topics = offsets?.topics?.map(({ topic, partitions }) => {
      const metadata = committedTopicId(this, topic);
      return { topic, partitions: partitions.map((each) => ({ ...each, metadata })) };
    });
    return commitOffsets.call(this, { ...offsets, ...(topics && { topics }) });
  };
}

/** A member that missed a topic for a moment asks whether it is another one before it reads on. */
function patchConsumerGroup(): void {
  const { prototype } = require('kafkajs/src/consumer/consumerGroup.js') as {
    prototype: ConsumerGroup;
  };
  const { fetch, recoverFromFetch } = prototype;
  const mayHaveChanged = new WeakSet<ConsumerGroup>();
  prototype.recoverFromFetch = function (this: ConsumerGroup, error) {
    if (error.type === 'UNKNOWN_TOPIC_OR_PARTITION') mayHaveChanged.add(this);
    // It asks once what the topic is now. Before it is made again that fails, and kafkajs would read on by its name.
    return recoverFromFetch.call(this, error);
  };
  prototype.fetch = async function (this: ConsumerGroup, nodeId) {
    if (mayHaveChanged.has(this)) {
      await this.cluster.refreshMetadata();
      mayHaveChanged.delete(this);
    }
    return fetch.call(this, nodeId);
  };
}

/** Offsets that were set by hand, or before this patch, say nothing of a topic and count. */
function ofSameTopic({ topic, partitions }: CommittedTopic, ids: TopicIds): CommittedTopic {
  const id = ids.get(topic);
  return {
    topic,
    partitions: partitions.map((each) =>
      isAnother(each.metadata, id) ? { ...each, offset: NO_OFFSET } : each,
    ),
  };
}
