import type { LogRecord, OutgoingRecord, RecordLog } from '@posthorn/platform/kafka/record-log.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { World } from '../run/world.ts';

export type StoredRecord = Pick<LogRecord, 'offset' | 'key' | 'value' | 'headers'>;

export interface Partition {
  records: StoredRecord[];
  endOffset: number;
}

export interface Place {
  topic: string;
  partition: number;
}

/** Logs in memory, and how far each group has committed. */
export interface SimulatedKafka {
  partitionAt: (place: Place) => Partition;
  placesOf: (topic: string) => Place[];
  /** Every topic that was written to. */
  topics: () => string[];
  group: (groupId: string) => Group;
  groups: () => Group[];
  publish: (process: SimulatedProcess, records: readonly OutgoingRecord[]) => Promise<void>;
  logOf: (process: SimulatedProcess) => RecordLog;
  /** Called with every record that is stored. */
  onAppend: (act: (process: SimulatedProcess, record: OutgoingRecord) => void) => void;
}

export interface Group {
  id: string;
  topics: Set<string>;
  /** Place → the next offset to read. */
  committed: Map<string, number>;
  members: Membership[];
  generation: number;
}

/** One reader, as its group sees it. */
export interface Membership {
  /** The partitions were shared out anew. */
  join: (generation: number, places: readonly Place[]) => void;
  /** A topic has more to read. */
  wake: (place: Place) => void;
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
  const unused = () => Promise.reject(new Error('read by a simulated reader instead'));
  return {
    partitionAt: (place) => partitionAt(state, place),
    placesOf: (topic) => partitionsOf(state, topic).map((_, partition) => ({ topic, partition })),
    topics: () => [...state.topics.keys()],
    group: (groupId) => groupOf(state, groupId),
    groups: () => [...state.groups.values()],
    publish,
    logOf: (process) => ({
      publish: (records) => publish(process, records),
      consume: unused,
      close: unused,
      isConnected: () => true,
    }),
    onAppend: (act) => state.listeners.push(act),
  };
}

function partitionsOf({ world, topics }: State, topic: string): Partition[] {
  const found =
    topics.get(topic) ??
    Array.from({ length: world.plan.partitions }, () => ({ records: [], endOffset: 0 }));
  topics.set(topic, found);
  return found;
}

function partitionAt(state: State, { topic, partition }: Place): Partition {
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

/** Every partition takes its part of the request for itself; kafkajs repeats what nobody answered. */
function produce(
  state: State,
  process: SimulatedProcess,
  records: readonly OutgoingRecord[],
): Promise<void> {
  const byPlace = new Map<string, { place: Place; records: OutgoingRecord[] }>();
  for (const record of records) {
    const place = { topic: record.topic, partition: partitionOf(state, record.key) };
    const part = byPlace.get(keyOf(place)) ?? { place, records: [] };
    part.records.push(record);
    byPlace.set(keyOf(place), part);
  }
  return process.request({
    what: `produce ${records.map(({ topic, key }) => `${topic}(${key.slice(-2)})`).join(' ')}`,
    parts: [...byPlace.values()].map((part) => () => {
      append(state, process, part);
    }),
    answer: () => undefined,
    lost: () => new Error('the broker did not answer'),
    isRepeated: true,
  });
}

function partitionOf({ world }: State, key: string): number {
  return Number(key.slice(-2)) % world.plan.partitions;
}

function append(
  state: State,
  process: SimulatedProcess,
  { place, records }: { place: Place; records: readonly OutgoingRecord[] },
): void {
  const { random, plan } = state.world;
  const partition = partitionAt(state, place);
  for (const record of records) {
    if (random.isHit(plan.gapRate)) partition.endOffset += 1;
    const { key, value, headers = {} } = record;
    partition.records.push({ offset: partition.endOffset, key, value, headers });
    partition.endOffset += 1;
    for (const listen of state.listeners) listen(process, record);
  }
  for (const { topics, members } of state.groups.values()) {
    if (topics.has(place.topic)) for (const member of members) member.wake(place);
  }
}

export function keyOf({ topic, partition }: Place): string {
  return `${topic}/${partition}`;
}
