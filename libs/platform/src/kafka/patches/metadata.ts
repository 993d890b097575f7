import { createRequire } from 'node:module';
import { Cursor } from '../fetch/cursor.ts';

/** The metadata of one partition, in the shape of kafkajs, with the id of its topic. */
interface PartitionDescription {
  partitionErrorCode: number;
  partitionId: number;
  leader: number;
  replicas: number[];
  isr: number[];
  offlineReplicas: number[];
  topicId: string;
}

/** The part of a response that kafkajs keeps. */
export interface MetadataResponse {
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
  /** Empty for all topics of the cluster. */
  topics: readonly string[];
  allowAutoTopicCreation?: boolean;
}

interface Encoder {
  writeBoolean: (value: boolean) => this;
  writeUVarInt: (value: number) => this;
  writeUVarIntString: (value: string) => this;
  writeInt32: (value: number) => this;
}

const require = createRequire(import.meta.url);

/** Returns the id of the topic with these partitions, in base64url as Kafka's tools show it; empty where it has none. */
export function topicIdOf(partitions: readonly object[]): string {
  const [first] = partitions as readonly Partial<PartitionDescription>[];
  return first?.topicId ?? '';
}

/** The first version of the request whose response has ids, and in which a topic is still asked for by its name alone. */
const VERSION_WITH_IDS = 10;
const API_KEY = 3;

/**
 * The newest Metadata request of kafkajs 2.2.4 is version 6, without the ids of topics. After the patch it has version 10 too, and
 * uses the highest that the broker has. Kafka has ids since 2.8; with an older one nothing changes.
 */
export function patchMetadata(): void {
  const metadata = require('kafkajs/src/protocol/requests/metadata/index.js') as MetadataProtocol;
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
    // A null array asks for all topics; kafkajs has an empty one for that.
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

/** Writes that there are no tagged fields. */
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

/** All zeros, which Kafka sends in the midst of its upgrade to ids, are none: else every offset would count as one of another topic. */
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
