import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createKeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createGroupPositions } from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import kafkajs, { type Kafka } from 'kafkajs';
import { Registry } from 'prom-client';
import { openScratchLog, type ScratchLog } from '../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { ClusterIngest, type ClusterIngestDeps, createIngestBudget } from './ingest.ts';
import type { LaneDeps, RecordOutcome } from './partition-lane.ts';
import type { IngestedMessage } from './read-record.ts';

const NEW: RecordOutcome = { kind: 'accepted', isNew: true };

let scratch: ScratchLog;
let running: ClusterIngest[];
let topic: string;
let counter = 0;
let looks = 0;
/** `topic/partition/offset` of each accepted record, in order. */
let accepted: string[];
/** The values of the records, by topic. */
let payloads: Map<string, string[]>;
/** Waits before anything of this topic is accepted. */
let gates: Map<string, Promise<null>>;
/** Topics whose company may send nothing. */
let suspended: Set<string>;

beforeAll(async () => {
  scratch = await openScratchLog();
});

beforeEach(() => {
  running = [];
  accepted = [];
  gates = new Map();
  suspended = new Set();
  payloads = new Map();
  counter += 1;
  topic = `ingest-${counter}`;
});

afterEach(async () => {
  await Promise.all(running.map((each) => each.stop(2_000)));
});

afterAll(() => scratch.close());

const groupId = (): string => `ingest-group-${process.pid}-${counter}`;

function lane(stopping: AbortSignal, isSteady: () => boolean): LaneDeps {
  const logger = createLogger('test', 'silent');
  return {
    read: (record) => {
      const ofTopic = payloads.get(record.topic) ?? [];
      payloads.set(record.topic, [...ofTopic, record.value.toString()]);
      const place = `${record.topic}/${record.partition}/${record.offset}`;
      return { kind: 'message', record, message: { place } as IngestedMessage };
    },
    nextSlice: () => Promise.resolve(),
    takePermits: (_companyId, count) => ({ granted: count, waitMs: 0 }),
    freeClaims: () => Promise.resolve(),
    accept: async ({ topic: of }, messages) => {
      await gates.get(of);
      // As a store that knows its keys.
      const known = new Set(accepted);
      accepted.push(...messages.map(({ place }) => place).filter((place) => !known.has(place)));
      return messages.map(() => NEW);
    },
    reject: () => Promise.resolve(),
    whyWaits: ({ topic: of }) => Promise.resolve(suspended.has(of) ? 'company_suspended' : null),
    isSteady,
    keepTrying: createKeepTrying({ logger, signal: stopping }),
    stopping,
    onWait: () => undefined,
  };
}

/** Starts to ingest as one process does. */
const ingest = (...topics: string[]): Promise<ClusterIngest> => ingestWith({}, ...topics);

async function ingestWith(
  changed: Partial<ClusterIngestDeps>,
  ...topics: string[]
): Promise<ClusterIngest> {
  const started = new ClusterIngest({
    kafka: scratch.kafka,
    groupId: groupId(),
    cluster: '',
    sources: topics.map((each) => ({ topic: each, companyId: `comp_of_${each}` })),
    companyTopicsPrefix: null,
    ownTopics: new Set(),
    budget: createIngestBudget(33_554_432),
    laneDeps: (_clusterId, isSteady, stopping) => lane(stopping, isSteady),
    onOutOfRange: () => undefined,
    areStoresUp: () => true,
    metrics: createKafkaMetrics(new Registry(), Date.now),
    monotonicMs: () => performance.now(),
    // Each call of `tick` looks at the topics.
    nowMs: () => (looks += 1) * 10_000,
    logger: createLogger('test', 'silent'),
    ...changed,
  });
  running.push(started);
  await started.tick();
  return started;
}

const publish = (to: string, count: number, from = 0): Promise<void> =>
  scratch.publish(
    to,
    Array.from({ length: count }, (_, n) => `k${from + n}`),
  );

async function committed(of: string): Promise<number> {
  const positions = createGroupPositions(scratch.kafka, { groupId: groupId(), topics: [of] });
  const found = await positions.read();
  await positions.close();
  return found.reduce((sum, each) => sum + Math.max(0, each.committed), 0);
}

function expectInOrder(): void {
  const byPartition = Map.groupBy(accepted, (place) => place.slice(0, place.lastIndexOf('/')));
  for (const places of byPartition.values()) {
    const offsets = places.map((place) => Number(place.split('/').at(-1)));
    expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
  }
}

describe('ingestion', () => {
  it('commits an offset only when the record is accepted', async () => {
    const name = await scratch.newTopic(topic, 1);
    const gate = Promise.withResolvers<null>();
    await publish(name, 3);
    await ingest(name);
    await eventually('they are committed', async () => (await committed(name)) === 3);
    gates.set(name, gate.promise);
    await publish(name, 5);
    // A second member makes the group commit all it can before it changes.
    const other = await ingest(name);
    await eventually('both are members', () => running.every((each) => each.isRunning()));
    expect(await committed(name)).toBe(3);
    gate.resolve(null);
    await eventually('the rest is committed', async () => (await committed(name)) === 8);
    await eventually('the other is a member', () => other.isRunning());
    expectInOrder();
  });

  it('accepts nothing of a partition that it has just got for half a second', async () => {
    const name = await scratch.newTopic(topic, 1);
    let nowMs = 1_000;
    await publish(name, 3);
    const started = await ingestWith({ monotonicMs: () => nowMs }, name);
    await eventually('the records are there', () => started.inFlight() === 3);
    expect(accepted).toEqual([]);
    nowMs += 500;
    await eventually('all are accepted', () => accepted.length === 3);
  });

  it('accepts each record of a partition once and in order while members come and go', async () => {
    const name = await scratch.newTopic(topic, 6);
    await publish(name, 2_000);
    const first = await ingest(name);
    await eventually('some are accepted', () => accepted.length > 100);
    await ingest(name);
    await publish(name, 2_000, 2_000);
    await eventually('more are accepted', () => accepted.length > 2_500, 30_000);
    await first.stop(2_000);
    await publish(name, 1_000, 4_000);
    await eventually('all are accepted', () => accepted.length === 5_000, 30_000);
    expect(new Set(accepted).size).toBe(5_000);
    expectInOrder();
  });

  it('reads no more of a source that is not accepted than its share, and goes on with the others', async () => {
    const [stuck, other] = [
      await scratch.newTopic(`${topic}-a`),
      await scratch.newTopic(`${topic}-b`),
    ];
    const gate = Promise.withResolvers<null>();
    gates.set(stuck, gate.promise);
    await publish(stuck, 5_000);
    const started = await ingest(stuck, other);
    await eventually('what it may read of it', () => started.inFlight() >= 1_000);
    await publish(other, 3_000);
    await eventually('the other is accepted', () => accepted.length === 3_000, 30_000);
    expect(started.inFlight()).toBeLessThanOrEqual(1_001);
    gate.resolve(null);
    await eventually('all are accepted', () => accepted.length === 8_000, 30_000);
    expectInOrder();
  });

  it('holds nothing of a company that is suspended, and accepts all in order when it no longer is', async () => {
    const [stuck, other] = [
      await scratch.newTopic(`${topic}-a`),
      await scratch.newTopic(`${topic}-b`),
    ];
    suspended.add(stuck);
    await publish(stuck, 5_000);
    const started = await ingest(stuck, other);
    await eventually('what it may read of it', () => started.inFlight() >= 1_000);
    await eventually('it is given back', () => started.inFlight() === 0);
    await publish(other, 3_000);
    await eventually('the other is accepted', () => accepted.length === 3_000, 30_000);
    const { records = 0 } = started.ready(Date.now()).get(stuck) ?? {};
    expect([started.isRunning(), records]).toEqual([true, 5_000]);
    const reasons = started.reports().filter(({ topic: of }) => of === stuck);
    expect(new Set(reasons.map(({ report }) => report.reason))).toEqual(
      new Set(['company_suspended']),
    );
    // Those of its partitions whose records were never read too.
    expect(reasons).toHaveLength(3);
    suspended.delete(stuck);
    await eventually('all are accepted', () => accepted.length === 8_000, 30_000);
    await eventually('and committed', async () => (await committed(stuck)) === 5_000, 30_000);
    expectInOrder();
  });

  it('counts the headers of records among the bytes that a source may have in flight', async () => {
    const [stuck, other] = [
      await scratch.newTopic(`${topic}-a`, 1),
      await scratch.newTopic(`${topic}-b`),
    ];
    const gate = Promise.withResolvers<null>();
    gates.set(stuck, gate.promise);
    const headers = { baggage: Buffer.alloc(60_000, 'x') };
    const copy = { topic: stuck, key: null, value: Buffer.from('{}'), headers };
    await scratch.records.publishCopies(Array.from({ length: 400 }, () => copy));
    const started = await ingest(stuck, other);
    await eventually('what it may read of it', () => started.inFlight() >= 270);
    await publish(other, 300);
    await eventually('the other is accepted', () => accepted.length === 300, 30_000);
    // Half of 32 MiB.
    expect(started.inFlight()).toBeLessThanOrEqual(284);
    gate.resolve(null);
    await eventually('all are accepted', () => accepted.length === 700, 30_000);
  });

  it('tries again after Kafka went away between two requests of its start, and is not running before', async () => {
    const name = await scratch.newTopic(topic, 1);
    await publish(name, 3);
    let isAway = true;
    const kafka = Object.assign(Object.create(scratch.kafka) as Kafka, {
      admin: (...options: Parameters<Kafka['admin']>) => {
        const admin = scratch.kafka.admin(...options);
        const describeCluster: typeof admin.describeCluster = () =>
          isAway ? Promise.reject(new Error('Kafka is away')) : admin.describeCluster();
        return { ...admin, describeCluster };
      },
    });
    const started = await ingestWith({ kafka }, name);
    expect(started.isRunning()).toBe(false);
    isAway = false;
    await started.tick();
    await eventually('they are accepted', () => accepted.length === 3);
  });

  it('is not running while its cluster cannot be reached, and is without a topic to read', async () => {
    const away = {
      connect: () => Promise.reject(new Error('away')),
      disconnect: () => Promise.resolve(),
    };
    const kafka = { admin: () => away } as unknown as Kafka;
    expect((await ingestWith({ kafka }, 'orders')).isRunning()).toBe(false);
    const warned: object[] = [];
    const logger = createLogger('test', 'silent');
    logger.warn = (fields: object) => void warned.push(fields);
    expect((await ingestWith({ logger }, `${topic}-none`)).isRunning()).toBe(true);
    expect(warned).toEqual([{ topics: [`${topic}-none`] }]);
  });

  it.each(['gzip', 'snappy', 'lz4', 'zstd'])(
    'accepts records that were compressed with %s, and those of other topics beside them',
    async (codec) => {
      const name = await scratch.newTopic(`${topic}-${codec}`, 1);
      const other = await scratch.newTopic(`${topic}-other`, 1);
      // The broker compresses what kafkajs sends it.
      await withAdmin(scratch.kafka, {}, (admin) =>
        admin.alterConfigs({
          validateOnly: false,
          resources: [
            {
              type: kafkajs.ConfigResourceTypes.TOPIC,
              name,
              configEntries: [{ name: 'compression.type', value: codec }],
            },
          ],
        }),
      );
      const values = Array.from({ length: 50 }, (_, n) => `{"n":${n},"pad":"${'pad '.repeat(n)}"}`);
      const copies = values.map((value) => ({ topic: name, key: null, value: Buffer.from(value) }));
      await scratch.records.publishCopies(copies);
      await publish(other, 5);
      await ingest(name, other);
      await eventually('all are accepted', () => accepted.length === 55);
      expect(payloads.get(name)).toEqual(values);
    },
  );

  it('passes the ends of transactions, and accepts nothing of one that was aborted', async () => {
    const name = await scratch.newTopic(topic, 1);
    const producer = scratch.kafka.producer({ transactionalId: name, maxInFlightRequests: 1 });
    await producer.connect();
    const send = async (values: string[], end: 'commit' | 'abort'): Promise<void> => {
      const transaction = await producer.transaction();
      await transaction.send({ topic: name, messages: values.map((value) => ({ value })) });
      await transaction[end]();
    };
    await send(['a', 'b'], 'commit');
    await ingest(name);
    await eventually('their end is committed', async () => (await committed(name)) === 3);
    await send(['c'], 'abort');
    await eventually('that of the aborted one is', async () => (await committed(name)) === 5);
    await send(['d'], 'commit');
    await producer.disconnect();
    await eventually('and the last one is', async () => (await committed(name)) === 7);
    expect(accepted).toEqual([0, 1, 5].map((offset) => `${name}/0/${offset}`));
  });

  it('reads a topic that is made later, and goes on without one that is deleted', async () => {
    const later = await scratch.newTopic(`${topic}-first`, 1);
    const name = later.replace('first', 'later');
    const started = await ingest(later, name);
    await scratch.newTopic(`${topic}-later`, 1);
    await started.tick();
    await publish(name, 10);
    await eventually('the records of the later one', () => accepted.length === 10, 30_000);
    const admin = scratch.kafka.admin();
    await admin.connect();
    await admin.deleteTopics({ topics: [name] });
    await admin.disconnect();
    await started.tick();
    // A producer that has written to the deleted topic fails for all others.
    const records = await scratch.openAnother();
    await records.publish(
      [0, 1, 2, 3, 4].map((n) => ({ topic: later, key: `k${n}`, value: Buffer.alloc(0) })),
    );
    await eventually('the records of the other', () => accepted.length === 15, 30_000);
  });

  it('reads a topic that was deleted and made again from its beginning', async () => {
    const name = await scratch.newTopic(topic, 1);
    const values = (prefix: string, count: number) =>
      Array.from({ length: count }, (_, n) => prefix + String(n));
    const write = async (texts: string[]): Promise<void> => {
      const records = await scratch.openAnother();
      await records.publish(
        texts.map((text) => ({ topic: name, key: '', value: Buffer.from(text) })),
      );
    };
    await write(values('old ', 6));
    const started = await ingest(name);
    await eventually('they are committed', async () => (await committed(name)) === 6);
    await withAdmin(scratch.kafka, {}, (admin) => admin.deleteTopics({ topics: [name] }));
    await eventually('it is made again', () =>
      scratch.newTopic(topic, 1).then(
        () => true,
        () => false,
      ),
    );
    // The place where the old one was read exists in this one.
    await write(values('new ', 20));
    await eventually(
      'all are read',
      async () => {
        await started.tick();
        return payloads.get(name)?.includes('new 19');
      },
      60_000,
    );
    const read = new Set(payloads.get(name));
    expect([...read]).toEqual([...values('old ', 6), ...values('new ', 20)]);
  });
});
