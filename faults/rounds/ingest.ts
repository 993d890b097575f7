import { companyTopicOf, ingestGroupId, type RejectCode } from '@posthorn/domain/ingest.ts';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import { createKafkaClient, withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { readTopic } from '@posthorn/platform/kafka/read-topic.ts';
import { documentsIn } from '@posthorn/platform/mongo/company-documents.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import { readReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import type { Kafka, Message as KafkaRecord } from 'kafkajs';
import { CLOSED_CONNECTION, NO_ANSWER, REFUSED_CONNECTION } from '../load/client.ts';
import type { Injected, Round, Scene } from '../round.ts';
import { INGESTING, type Member, startMembers, USUAL_LAYOUT } from '../stack/fleet.ts';
import { createFreezes, disturbProcesses, type Freezes } from './disturb.ts';

const PREFIX = 'posthorn.';
const PARTITIONS = 12;
const DEFAULT_RECORDS = 20_000;
/** One of so many records is a bad one. */
const BAD_EVERY = 1_000;
const LEAST_BAD = 20;
const PAYLOAD_BYTES = 1_024;
const FROZEN_MS = 30_000;
const STALLED_MS = 120_000;
const MOST_MS = 3_600_000;
const RECOVER_MS = 120_000;
/** Names the code with which a bad record has to be rejected. */
const EXPECTED_HEADER = 'planted';

const silent = createLogger('faults', 'silent');

export const INGEST: Round = {
  name: 'F16',
  touches: ['ingest'],
  summary:
    'records of a topic are ingested; kill -9 of an ingest process every 20 s, a rebalance every 30 s, MongoDB and Kafka frozen once each for 30 s (--records)',
  promise:
    'each record accepted exactly once, each bad one rejected with its reason, the ids of each partition in the order of its offsets; 0 lost and 0 duplicates of what is sent besides',
  seconds: [150],
  layout: {
    ...USUAL_LAYOUT,
    settings: {
      ...USUAL_LAYOUT.settings,
      INGEST_COMPANY_TOPICS: 'true',
      RATE_LIMIT_COMPANY_PER_MINUTE: '0',
    },
  },
  answers: ['503', '409', REFUSED_CONNECTION, CLOSED_CONNECTION, NO_ANSWER],
  recoverWithinMs: () => RECOVER_MS,
  async inject(scene) {
    const source = await openSource(scene);
    await startMembers(scene.fleet, INGESTING);
    const freezes = freezesOf(scene);
    const producing = produce(scene, source);
    const victims = { killed: (turn: number) => [nextOne(turn)], restarted: nextOne };
    await Promise.all([producing, disturbProcesses(scene, freezes, victims), freezes.run()]);
    const endedAtMs = Date.now();
    scene.say(`${await producing} records written`);
    const checked = await check(scene, source);
    for (const member of INGESTING) await scene.fleet.stop(member);
    return { endedAtMs, ...checked };
  },
};

interface Source {
  kafka: Kafka;
  topic: string;
  companyId: string;
  appId: string;
}

/** Creates a company of its own with an app without webhooks, so that the messages need no deliveries. */
async function openSource({ run, baseUrls, stores }: Scene): Promise<Source> {
  const created = await run('services/admin/src/main.ts', [
    'company',
    'create',
    'Ingest',
    '--json',
  ]);
  const { companyId, apiKey } = JSON.parse(created) as { companyId: string; apiKey: string };
  const post = async (path: string, body: object): Promise<string> => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const url = `${baseUrls[0] ?? ''}/api/v1${path}`;
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return ((await response.json()) as { data: { id: string } }).data.id;
  };
  const projectId = await post('/projects', { name: 'Ingest' });
  const appId = await post('/apps', { name: 'Ingest', projectId });
  const brokers = stores.addresses.kafkaBrokers.split(',');
  const kafka = createKafkaClient('posthorn-faults', { brokers }, silent);
  const topic = companyTopicOf(PREFIX, companyId);
  await withAdmin(kafka, {}, (admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }] }),
  );
  return { kafka, topic, companyId, appId };
}

/** The bad records, in turn. */
const BAD: readonly { code: RejectCode; value?: string; headers?: Record<string, string> }[] = [
  { code: 'invalid_json', value: 'no JSON' },
  { code: 'not_found', headers: { 'posthorn-app-id': 'app_of_nobody' } },
  { code: 'invalid_request', headers: { 'posthorn-ordering-key': 'k' } },
  { code: 'body_too_large', value: `{"x":"${'x'.repeat(262_144)}"}` },
];

function recordOf(n: number, appId: string, badEvery: number): KafkaRecord {
  const partition = n % PARTITIONS;
  const headers = { 'posthorn-app-id': appId };
  const value = `{"n":${n},"pad":"${'x'.repeat(PAYLOAD_BYTES - 24)}"}`;
  const turn = Math.floor(n / badEvery);
  // Not at the same place of each turn: most partitions would have no bad one.
  const bad = n % badEvery === turn % PARTITIONS ? BAD[turn % BAD.length] : null;
  if (!bad) return { partition, value, headers };
  const { code, ...changed } = bad;
  return {
    partition,
    value: changed.value ?? value,
    headers: { ...headers, ...changed.headers, [EXPECTED_HEADER]: code },
  };
}

const BATCH = 500;

/** Writes the records evenly over the time of the round. What Kafka does not answer is written again: a record more. */
async function produce(scene: Scene, { kafka, topic, appId }: Source): Promise<number> {
  const { seconds, records = DEFAULT_RECORDS, pause } = scene;
  const badEvery = Math.max(PARTITIONS, Math.min(BAD_EVERY, Math.floor(records / LEAST_BAD)));
  const producer = kafka.producer();
  await producer.connect();
  const startedMs = performance.now();
  for (let from = 0; from < records; from += BATCH) {
    const count = Math.min(BATCH, records - from);
    const messages = Array.from({ length: count }, (_, n) => recordOf(from + n, appId, badEvery));
    for (let isWritten = false; !isWritten;) {
      isWritten = await producer.send({ topic, acks: -1, messages }).then(
        () => true,
        () => false,
      );
    }
    const dueMs = ((from + count) / records) * seconds * 1_000;
    await pause(Math.max(0, dueMs - (performance.now() - startedMs)));
  }
  await producer.disconnect();
  return records;
}

/** Freezes MongoDB after a quarter of the time, and Kafka after six tenths. */
function freezesOf(scene: Scene): Freezes {
  const frozenMs = Math.min(FROZEN_MS, scene.seconds * 200);
  return createFreezes(scene, [
    { store: 'mongodb', afterShare: 0.25, frozenMs },
    { store: 'kafka', afterShare: 0.15, frozenMs },
  ]);
}

/** Two of the three run at any time. */
function nextOne(turn: number): Member {
  return INGESTING[turn % INGESTING.length] ?? 'ingest-1';
}

type Checked = Pick<Injected, 'findings'>;

/** Compares what the topic has with the stored messages and the rejected records, by partition and offset. */
async function check(scene: Scene, source: Source): Promise<Checked> {
  const ends = await endsOf(source);
  const total = [...ends.values()].reduce((sum, end) => sum + end, 0);
  const mongo = await connectMongo(scene.stores.addresses.mongodbUrl, 'posthorn-faults');
  try {
    await untilRead(scene, source, total);
    const stored = await readStored(mongo.db, source);
    const rejected = await readRejected(source);
    scene.say(`${total} records: ${stored.length} accepted, ${rejected.size} rejected`);
    return { findings: findingsOf(ends, { stored, rejected }) };
  } finally {
    await mongo.close();
  }
}

/** Waits until all records are committed, or none has been for so long that it counts as a stall. */
async function untilRead({ until }: Scene, source: Source, total: number): Promise<void> {
  let committed = -1;
  let movedAtMs = 0;
  const isOver = async (): Promise<boolean> => {
    const before = committed;
    committed = await committedOf(source);
    if (committed > before) movedAtMs = performance.now();
    return committed >= total || performance.now() - movedAtMs > STALLED_MS;
  };
  await until('every record', isOver, MOST_MS);
}

async function committedOf({ kafka, topic }: Source): Promise<number> {
  const groupId = ingestGroupId(PREFIX);
  const found = await withAdmin(kafka, {}, (admin) =>
    admin.fetchOffsets({ groupId, topics: [topic] }),
  );
  const offsets = found.flatMap(({ partitions }) => partitions.map(({ offset }) => Number(offset)));
  return offsets.reduce((sum, offset) => sum + Math.max(0, offset), 0);
}

async function endsOf({ kafka, topic }: Source): Promise<ReadonlyMap<number, number>> {
  const offsets = await withAdmin(kafka, {}, (admin) => admin.fetchTopicOffsets(topic));
  return new Map(offsets.map(({ partition, high }) => [partition, Number(high)]));
}

/** `partition/offset` of a record. */
type Place = string;

interface Audited {
  /** The places of the stored messages, in the order of their ids. */
  stored: Place[];
  /** The codes of the rejected records. */
  rejected: ReadonlyMap<Place, { code: string; expected: string }>;
}

type Db = Awaited<ReturnType<typeof connectMongo>>['db'];

async function readStored(db: Db, { companyId }: Source): Promise<Place[]> {
  const places: Place[] = [];
  for (const documents of db.days.messages.within({})) {
    const found = await documentsIn<'messages'>(documents, companyId)
      .find({})
      .project<{ requestId: string }>({ requestId: 1 })
      .sort({ _id: 1 })
      .toArray();
    // kafka/<cluster>/<topic>/<partition>/<offset>/<time>
    for (const { requestId } of found) places.push(requestId.split('/').slice(3, 5).join('/'));
  }
  return places;
}

async function readRejected({ kafka, topic }: Source): Promise<Audited['rejected']> {
  const rejected = new Map<Place, { code: string; expected: string }>();
  await readTopic(kafka, {
    topic: topicNames(PREFIX, [], []).ingestRejected,
    groupId: `${PREFIX}faults-${Date.now()}`,
    logger: silent,
    visit: (record) => {
      const { place, code } = readReject(record);
      if (place?.topic === topic) {
        const expected = record.headers[EXPECTED_HEADER] ?? 'none';
        rejected.set(`${place.partition}/${place.offset}`, { code, expected });
      }
      return Promise.resolve();
    },
  });
  return rejected;
}

/** Exported for its test. */
export function findingsOf(
  ends: ReadonlyMap<number, number>,
  { stored, rejected }: Audited,
): string[] {
  const accepted = new Set(stored);
  const findings: string[] = [];
  const note = (what: string, places: readonly Place[]): void => {
    if (places.length > 0) findings.push(`${what}: ${places.length}, such as ${places[0] ?? ''}`);
  };
  const all = [...ends].flatMap(([partition, end]) =>
    Array.from({ length: end }, (_, offset): Place => `${partition}/${offset}`),
  );
  note(
    'records neither accepted nor rejected',
    all.filter((place) => !accepted.has(place) && !rejected.has(place)),
  );
  const seen = new Set<Place>();
  note(
    'records accepted twice',
    stored.filter((place) => seen.has(place) || !seen.add(place)),
  );
  note(
    'records accepted and rejected',
    stored.filter((place) => rejected.has(place)),
  );
  const wrong = [...rejected].filter(([, { code, expected }]) => code !== expected);
  note(
    'records rejected for another reason',
    wrong.map(([place, { code, expected }]) => `${place} (${code} instead of ${expected})`),
  );
  note('ids that are not in the order of the records', disordered(stored));
  return findings;
}

/** Returns the places whose message has an id behind that of a later record of their partition. */
function disordered(stored: readonly Place[]): Place[] {
  const highest = new Map<string, number>();
  return stored.filter((place) => {
    const [partition = '', offset] = place.split('/');
    const before = highest.get(partition) ?? -1;
    highest.set(partition, Math.max(before, Number(offset)));
    return Number(offset) < before;
  });
}
