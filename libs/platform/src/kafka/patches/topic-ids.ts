import { createRequire } from 'node:module';
import { Cursor } from '../fetch/cursor.ts';
import { rebalanceError } from './joins.ts';

/** A partition in the description of a topic, as kafkajs keeps it. */
interface PartitionDescription {
  partitionErrorCode: number;
  partitionId: number;
  leader: number;
  replicas: number[];
  isr: number[];
  offlineReplicas: number[];
  topicId: string;
}

interface MetadataResponse {
  throttleTime: 0;
  clientSideThrottleTime: number;
  brokers: { nodeId: number; host: string; port: number; rack: string | null }[];
  clusterId: string | null;
  controllerId: number;
  topicMetadata: {
    topicErrorCode: number;
    topic: string;
    isInternal: boolean;
    partitionMetadata: PartitionDescription[];
  }[];
}

/** The part of kafkajs's Metadata request that is used here. */
interface MetadataProtocol {
  versions: string[];
  protocol: (of: { version: number }) => (request: MetadataRequest) => object;
}

interface MetadataRequest {
  /** None for all of the cluster. */
  topics: readonly string[];
  allowAutoTopicCreation?: boolean;
}

interface Encoder {
  writeBoolean: (value: boolean) => this;
  writeUVarInt: (value: number) => this;
  writeUVarIntString: (value: string) => this;
  writeInt32: (value: number) => this;
}

/** The part of kafkajs's offset manager, one for each generation of a group, that is used here. */
interface OffsetManager {
  cluster: Cluster;
  topics: readonly string[];
  getCoordinator: () => Promise<Coordinator>;
  resolveOffsets: () => Promise<void>;
  commitOffsets: (offsets?: { topics?: CommittedTopic[] }) => Promise<void>;
}

interface Cluster {
  /** What the client has read last; null before that. */
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

/** What kafkajs reads as "nothing committed". */
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

/** By what a client has read: a process may have thousands of topics, and looks at each fetch. */
const known = new WeakMap<object, TopicIds>();

function idsIn({ brokerPool: { metadata } }: Pick<Cluster, 'brokerPool'>): TopicIds {
  if (metadata === null) return new Map();
  const before = known.get(metadata);
  if (before) return before;
  const { clusterId, topicMetadata } = metadata;
  const ids = new Map(
    topicMetadata.flatMap(({ topic, partitionMetadata }) => {
      const id = topicIdOf(partitionMetadata);
      return id === '' ? [] : [[topic, `${clusterId ?? ''}/${id}`] as const];
    }),
  );
  known.set(metadata, ids);
  return ids;
}

/**
 * Kafkajs 2.2.4 knows topics by their names. One that was deleted and made again is read on at the offset of the old one, and the
 * records before it never. After the patch each commit says, in its metadata, of which topic it is (KIP-516), and a commit of
 * another topic of this name counts as none: the group begins as with a new topic. Kafka has ids since 2.8; before, nothing
 * changes.
 */
export function patchTopicIds(): void {
  patchMetadata(require('kafkajs/src/protocol/requests/metadata/index.js') as MetadataProtocol);
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
    // Called before each fetch. An offset of the old topic must not be committed with the id of the new one.
    if (this.topics.some((topic) => wasMadeAgain(this, topic))) throw rebalanceError();
    const ids = idsOf.get(this) ?? idsIn(this.cluster);
    idsOf.set(this, ids);
    const coordinator = await this.getCoordinator();
    const offsetFetch: Coordinator['offsetFetch'] = async (request) => {
      const response = await coordinator.offsetFetch(request);
      return { ...response, responses: response.responses.map((each) => ofSameTopic(each, ids)) };
    };
    // What it sets is set on objects that both share.
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

/** Returns the id of the topic with these partitions, in base64url as Kafka's tools show it; empty where it has none. */
export function topicIdOf(partitions: readonly object[]): string {
  const [first] = partitions as readonly Partial<PartitionDescription>[];
  return first?.topicId ?? '';
}

/** The first version of the request whose response has ids, and in which a topic is still asked for by its name alone. */
const VERSION_WITH_IDS = 10;
const API_KEY = 3;

/** Adds a version to those that kafkajs knows. It uses the highest that the broker has too. */
function patchMetadata(metadata: MetadataProtocol): void {
  const { protocol } = metadata;
  const { parse } = require('kafkajs/src/protocol/requests/metadata/v0/response.js') as object & {
    parse: unknown;
  };
  metadata.versions = [...metadata.versions, String(VERSION_WITH_IDS)];
  metadata.protocol = ({ version }) =>
    version < VERSION_WITH_IDS
      ? // A broker may have no version between those of kafkajs and this one.
        protocol({ version: Math.min(version, VERSION_OF_KAFKAJS) })
      : (request) => ({ request: requestOf(request), response: { decode, parse } });
}

/** The highest that kafkajs has itself. */
const VERSION_OF_KAFKAJS = 6;

function requestOf({ topics, allowAutoTopicCreation = true }: MetadataRequest): object {
  const NewEncoder = require('kafkajs/src/protocol/encoder.js') as new () => Encoder;
  const encode = (): Promise<Encoder> => {
    const encoder = new NewEncoder();
    writeTags(encoder);
    // Kafkajs asks for none when it wants all.
    encoder.writeUVarInt(topics.length === 0 ? 0 : topics.length + 1);
    for (const topic of topics) {
      // No id.
      for (let words = 0; words < 4; words += 1) encoder.writeInt32(0);
      writeTags(encoder.writeUVarIntString(topic));
    }
    encoder.writeBoolean(allowAutoTopicCreation);
    // No list of what this user may do, with the cluster and with each topic.
    encoder.writeBoolean(false).writeBoolean(false);
    return Promise.resolve(writeTags(encoder));
  };
  return { apiKey: API_KEY, apiVersion: VERSION_WITH_IDS, apiName: 'Metadata', encode };
}

/** None. */
const writeTags = (encoder: Encoder): Encoder => encoder.writeUVarInt(0);

/** Decodes a response of version 10, in the shape of kafkajs (KIP-482, KIP-516). */
function decode(bytes: Buffer): Promise<MetadataResponse> {
  const cursor = new Cursor(bytes);
  cursor.tags();
  const response: MetadataResponse = {
    clientSideThrottleTime: cursor.int32(),
    throttleTime: 0,
    brokers: cursor.compactArray(() => {
      const nodeId = cursor.int32();
      const host = cursor.compactString() ?? '';
      const broker = { nodeId, host, port: cursor.int32(), rack: cursor.compactString() };
      cursor.tags();
      return broker;
    }),
    clusterId: cursor.compactString(),
    controllerId: cursor.int32(),
    topicMetadata: cursor.compactArray(() => topicOf(cursor)),
  };
  return Promise.resolve(response);
}

const ID_BYTES = 16;
/** Bits of what this user may do: none was asked for. */
const OPERATIONS_BYTES = 4;

function topicOf(cursor: Cursor): MetadataResponse['topicMetadata'][number] {
  const topicErrorCode = cursor.int16();
  const topic = cursor.compactString() ?? '';
  const topicId = idIn(cursor.take(ID_BYTES));
  const isInternal = cursor.int8() !== 0;
  const partitionMetadata = cursor.compactArray(() => partitionOf(cursor, topicId));
  cursor.skip(OPERATIONS_BYTES);
  cursor.tags();
  return { topicErrorCode, topic, isInternal, partitionMetadata };
}

/** Zeros, in the midst of an upgrade of Kafka, are none: every offset would count as one of another topic afterwards. */
const idIn = (bytes: Buffer): string =>
  bytes.some((byte) => byte !== 0) ? bytes.toString('base64url') : '';

function partitionOf(cursor: Cursor, topicId: string): PartitionDescription {
  const nodes = (): number[] => cursor.compactArray(() => cursor.int32());
  const partitionErrorCode = cursor.int16();
  const partitionId = cursor.int32();
  const leader = cursor.int32();
  // The epoch of the leader, which kafkajs does not know.
  cursor.int32();
  const partition = { partitionErrorCode, partitionId, leader, topicId };
  const described = { ...partition, replicas: nodes(), isr: nodes(), offlineReplicas: nodes() };
  cursor.tags();
  return described;
}
