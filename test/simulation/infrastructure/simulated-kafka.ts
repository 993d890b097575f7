import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { World } from '../world/world.ts';

export type StoredRecord = Pick<LogRecord, 'offset' | 'key' | 'value' | 'headers'>;

export interface Partition {
  records: StoredRecord[];
  endOffset: number;
}

export interface TopicPartition {
  topic: string;
  partition: number;
}

/** Topics in memory, with their consumer groups and committed offsets. */
export interface SimulatedKafka {
  partitionAt: (topicPartition: TopicPartition) => Partition;
  topicPartitions: (topic: string) => TopicPartition[];
  /** Returns the topics that have been written to or read. */
  topics: () => string[];
  group: (groupId: string) => Group;
  groups: () => Group[];
  publish: (process: SimulatedProcess, records: readonly OutgoingRecord[]) => Promise<void>;
  recordLogOf: (process: SimulatedProcess) => RecordLog;
  /** Registers a listener that is called with every stored record. */
  onAppend: (listener: (process: SimulatedProcess, record: OutgoingRecord) => void) => void;
}

export interface Group {
  id: string;
  topics: Set<string>;
  /** The next offset to read, by keyOf(topicPartition). */
  committed: Map<string, number>;
  members: GroupMember[];
  generation: number;
}

/** A consumer as a member of its group. */
export interface GroupMember {
  /** Called when partitions have been assigned in a new generation. */
  onAssigned: (generation: number, assigned: readonly TopicPartition[]) => void;
  /** Called when a partition has new records. */
  onNewRecords: (topicPartition: TopicPartition) => void;
}

interface State {
  world: World;
  topics: Map<string, Partition[]>;
  groups: Map<string, Group>;
  listeners: ((process: SimulatedProcess, record: OutgoingRecord) => void)[];
}

export function createSimulatedKafka(world: World): SimulatedKafka {
  const state: State = { world, topics: new Map(), groups: new Map(), listeners: [] };
  const publish: SimulatedKafka['publish'] = (process, records) =>
    records.length === 0 ? Promise.resolve() : produce(state, process, records);
  const unused = () =>
    Promise.reject(new Error('not supported: records are read by a simulated consumer'));
  return {
    partitionAt: (topicPartition) => partitionAt(state, topicPartition),
    topicPartitions: (topic) =>
      partitionsOf(state, topic).map((_, partition) => ({ topic, partition })),
    topics: () => [...state.topics.keys()],
    group: (groupId) => groupOf(state, groupId),
    groups: () => [...state.groups.values()],
    publish,
    recordLogOf: (process) => ({
      publish: (records) => publish(process, records),
      consume: unused,
      close: unused,
      isConnected: () => true,
    }),
    onAppend: (listener) => state.listeners.push(listener),
  };
}

function partitionsOf({ world, topics }: State, topic: string): Partition[] {
  const found =
    topics.get(topic) ??
    Array.from({ length: world.plan.partitions }, () => ({ records: [], endOffset: 0 }));
  topics.set(topic, found);
  return found;
}

function partitionAt(state: State, { topic, partition }: TopicPartition): Partition {
  return partitionsOf(state, topic)[partition] ?? { records: [], endOffset: 0 };
}

function groupOf({ groups }: State, id: string): Group {
  const found = groups.get(id) ?? {
    id,
    topics: new Set(),
    committed: new Map(),
    members: [],
    generation: 0,
  };
  groups.set(id, found);
  return found;
}

/** Appends to each partition separately. Like kafkajs, sends a request again if there is no response. */
function produce(
  state: State,
  process: SimulatedProcess,
  records: readonly OutgoingRecord[],
): Promise<void> {
  const byPartition = new Map<
    string,
    { topicPartition: TopicPartition; records: OutgoingRecord[] }
  >();
  for (const record of records) {
    const topicPartition = { topic: record.topic, partition: partitionOf(state, record.key) };
    const part = byPartition.get(keyOf(topicPartition)) ?? { topicPartition, records: [] };
    part.records.push(record);
    byPartition.set(keyOf(topicPartition), part);
  }
  return process.request({
    what: `produce ${records.map(({ topic, key }) => `${topic}(${key.slice(-2)})`).join(' ')}`,
    effects: [...byPartition.values()].map((part) => () => {
      append(state, process, part);
    }),
    respond: () => undefined,
    noResponse: () => new Error('the broker did not respond'),
    isRetried: true,
  });
}

function partitionOf({ world }: State, key: string): number {
  return Number(key.slice(-2)) % world.plan.partitions;
}

function append(
  state: State,
  process: SimulatedProcess,
  {
    topicPartition,
    records,
  }: { topicPartition: TopicPartition; records: readonly OutgoingRecord[] },
): void {
  const { random, plan } = state.world;
  const partition = partitionAt(state, topicPartition);
  for (const record of records) {
    if (random.bool(plan.gapRate)) partition.endOffset += 1;
    const { key, value, headers = {} } = record;
    partition.records.push({ offset: partition.endOffset, key, value, headers });
    partition.endOffset += 1;
    for (const listen of state.listeners) listen(process, record);
  }
  for (const { topics, members } of state.groups.values()) {
    if (topics.has(topicPartition.topic))
      for (const member of members) member.onNewRecords(topicPartition);
  }
}

export function keyOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}
