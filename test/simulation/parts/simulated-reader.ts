import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createPartitionWindow } from '@posthorn/platform/kafka/positions/partition-window.ts';
import { createPauses } from '@posthorn/platform/kafka/positions/pauses.ts';
import type { LogRecord } from '@posthorn/platform/kafka/record-log.ts';
import { takeIn, type Intake } from '@posthorn/platform/kafka/consumer/take-in.ts';
import type { EachBatchPayload } from 'kafkajs';
import { setMaxListeners } from 'node:events';
import { Registry } from 'prom-client';
import { QUIET } from '../chance/event-queue.ts';
import type { Reader, ReaderOptions } from '../judge/reader-state.ts';
import { enterGroup, loseMember, shareOut } from './share-partitions.ts';
import { LOGGER } from './silent.ts';
import { commitSoon } from './simulated-commits.ts';
import {
  keyOf,
  type Group,
  type Membership,
  type Place,
  type SimulatedKafka,
  type StoredRecord,
} from './simulated-kafka.ts';
import { createPausing } from './simulated-pausing.ts';
import type { World } from '../run/world.ts';

const METRICS = createKafkaMetrics(new Registry());
const MAX_BATCH = 12;
const MAX_FETCH_MS = 200;

/** Joins a group and reads, with the real window, pauses and intake between Kafka and the handler. */
export function openReader(world: World, kafka: SimulatedKafka, options: ReaderOptions): void {
  const group = kafka.group(options.groupId);
  for (const topic of options.topics) group.topics.add(topic);
  const reader = createReader(world, kafka, group, options);
  const membership: Membership = {
    join: (generation, places) => {
      join(reader, generation, places);
    },
    wake: (place) => {
      fetch(reader, place);
    },
  };
  options.process.onCrash(() => {
    options.watch.onInterrupted([...reader.begun.values()].flat());
    reader.pauses.close();
    loseMember(world, kafka, group, membership);
  });
  options.process.onDisturb(() => {
    if (world.random.isHit(0.5)) shareOut(world, kafka, group);
  });
  enterGroup(world, kafka, group, membership);
}

function createReader(
  world: World,
  kafka: SimulatedKafka,
  group: Group,
  options: ReaderOptions,
): Reader {
  const draining = new AbortController().signal;
  setMaxListeners(0, draining);
  const paused = new Set<string>();
  const offsets = createPartitionWindow();
  const handle = (record: LogRecord): Promise<void> => handleOne(reader, record);
  const pauses = createPauses(
    createPausing(paused, (place) => {
      fetch(reader, place);
    }),
  );
  const { window, postponeMs } = options;
  const intake: Intake = {
    handle,
    window,
    offsets,
    pauses,
    draining,
    logger: LOGGER,
    metrics: METRICS,
    ...(postponeMs && { postponeMs }),
  };
  const reader: Reader = {
    ...options,
    world,
    kafka,
    group,
    offsets,
    pauses,
    intake,
    paused,
    generation: 0,
    positions: new Map(),
    fetching: new Set(),
    begun: new Map(),
    isCommitting: false,
  };
  return reader;
}

async function handleOne(reader: Reader, record: LogRecord): Promise<void> {
  const { watch, group, process, handle, begun } = reader;
  const key = keyOf(record);
  begun.set(key, [...(begun.get(key) ?? []), record]);
  watch.onHandled(group, record, process);
  await handle(record);
  watch.onDone(group, record);
  commitSoon(reader);
}

/** As `followMembership` of join-group.ts. */
function join(reader: Reader, generation: number, places: readonly Place[]): void {
  const { offsets, pauses, positions, group, process, begun } = reader;
  if (!process.isAlive()) return;
  reader.watch.onInterrupted([...begun.values()].flat());
  begun.clear();
  reader.generation = generation;
  offsets.doubtAll();
  offsets.keepOnly(assignmentOf(places));
  positions.clear();
  for (const place of places) {
    positions.set(keyOf(place), group.committed.get(keyOf(place)) ?? 0);
  }
  pauses.forgetAll();
  for (const place of places) fetch(reader, place);
}

function assignmentOf(places: readonly Place[]): Record<string, number[]> {
  const assignment: Record<string, number[]> = {};
  for (const { topic, partition } of places) (assignment[topic] ??= []).push(partition);
  return assignment;
}

/** A batch of any size is on its way for some time, and may come after the group has changed. */
function fetch(reader: Reader, place: Place): void {
  const { world, kafka, process, positions, paused, fetching } = reader;
  const key = keyOf(place);
  const position = positions.get(key);
  if (position === undefined || paused.has(key) || fetching.has(key) || !process.isAlive()) return;
  const { records, endOffset } = kafka.partitionAt(place);
  const ahead = records.filter(({ offset }) => offset >= position);
  if (ahead.length === 0) return;
  const { time, random, plan } = world;
  const batch = ahead.slice(0, random.between(1, MAX_BATCH));
  fetching.add(key);
  time.after(random.between(1, Math.min(MAX_FETCH_MS, 2 * plan.latencyMs)), () => {
    fetching.delete(key);
    handOver(reader, place, { batch, endOffset });
    fetch(reader, place);
    return positions.get(key) === position ? QUIET : undefined;
  });
}

function handOver(
  reader: Reader,
  place: Place,
  { batch, endOffset }: { batch: readonly StoredRecord[]; endOffset: number },
): void {
  const { positions, paused, process, world } = reader;
  const key = keyOf(place);
  if (!process.isAlive() || !positions.has(key) || paused.has(key)) return;
  world.tell(process.name, `reads ${key} from ${batch[0]?.offset ?? '-'}, ${batch.length} records`);
  // Of kafkajs' payload the members that an intake uses.
  takeIn(reader.intake, {
    batch: { ...place, messages: batch.map(toMessage), highWatermark: String(endOffset) },
    resolveOffset: (offset: string) => positions.set(key, Number(offset) + 1),
  } as unknown as EachBatchPayload);
  commitSoon(reader);
}

function toMessage({ offset, key, value, headers }: StoredRecord): object {
  return { offset: String(offset), key: Buffer.from(key), value, headers };
}
