import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { companyTopicOf } from '@posthorn/domain/ingest.ts';
import { withAdmin } from '@posthorn/platform/kafka/connect.ts';
import { Webhook } from 'standardwebhooks';
import type { Kafka, Message as KafkaRecord, Producer } from 'kafkajs';
import { type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { printedAuditEvents } from '../../support/process/printed-audit-events.ts';
import { ADMIN, killHard, type ServiceProcess } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { metricOf, untilMetric } from '../../support/process/traffic.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { openKafka } from '../../support/stores/open-kafka.ts';
import { eventually } from '../../support/time/eventually.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';

interface ShownReject {
  partition: number;
  offset: number;
  code: string;
  message: string;
  source: string;
}

const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';

const { posthorn } = useCompany('retries');
const receiver = useReceiver();
let ingesting: ServiceProcess;
/** Takes over when that one is killed. */
let second: ServiceProcess;
/** Of a gateway that knows the sources. */
let api: ApiClient;
let kafka: Kafka;
let producer: Producer;
let target: { appId: string; webhookId: string; projectId: string };
let topic: string;
let settings: Record<string, string>;

beforeAll(async () => {
  const eventTypes = ['order.paid', 'plain'];
  target = await posthorn.api.createTarget(receiver.url, { eventTypes, secret: SECRET });
  kafka = openKafka(posthorn.env);
  topic = `${posthorn.env.TOPIC_PREFIX}orders`;
  await withAdmin(kafka, {}, (admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] }),
  );
  producer = kafka.producer();
  await producer.connect();
  const source = { topic, companyId: posthorn.companyId, appId: target.appId };
  settings = { INGEST_SOURCES: JSON.stringify([source]), INGEST_COMPANY_TOPICS: 'true' };
  [ingesting] = await Promise.all([posthorn.startProcess('ingest', settings), startGateway()]);
}, 120_000);

afterAll(async () => {
  await producer.disconnect();
});

async function startGateway(): Promise<void> {
  const [port = 0] = await freePorts(1);
  api = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey);
  await posthorn.start('gateway', { ...settings, PORT: String(port) });
}

const produce = (messages: KafkaRecord[], to = topic) =>
  producer.send({ topic: to, acks: -1, messages });
const admin = async (...args: string[]): Promise<unknown> =>
  JSON.parse(
    await runProgram(ADMIN, ['ingest', ...args, '--json'], { ...posthorn.env, ...settings }),
  );
const bodies = (): string[] => receiver.received.map(({ body }) => body.toString());

async function rejects(): Promise<ShownReject[]> {
  return ((await admin('rejected', 'list')) as { rejected: ShownReject[] }).rejected;
}

describe('a record of a source', () => {
  it('arrives signed at the webhooks of the app, byte for byte', async () => {
    const value = '{ "order": 12345678901234567890,\n  "total": 1e400 } ';
    await produce([
      {
        value,
        headers: {
          'posthorn-event-type': 'order.paid',
          'posthorn-tags': 'a, b',
          'posthorn-external-id': 'evt-17',
        },
      },
    ]);
    await eventually('the delivery', () => bodies().includes(value));
    const found = receiver.received.find(({ body }) => body.toString() === value);
    new Webhook(SECRET).verify(value, found?.headers as Record<string, string>);
    const messageId = String(found?.headers['webhook-id']);
    const { body } = await posthorn.api.get(`/api/v1/webhook-messages/${messageId}`);
    const given = { eventType: 'order.paid', tags: ['a', 'b'], externalId: 'evt-17' };
    expect(body.data).toMatchObject(given);
  });

  it('may be a CloudEvent in binary mode, which is accepted once however often it is written', async () => {
    const value = '{"event":"cloud"}';
    const headers = {
      ce_specversion: '1.0',
      ce_id: 'e1',
      ce_source: '/shop',
      ce_type: 'order.paid',
    };
    await produce([
      { value, headers, partition: 0 },
      { value, headers, partition: 1 },
      { value: '{"last":0}', headers: { 'posthorn-event-type': 'plain' }, partition: 0 },
      { value: '{"last":1}', headers: { 'posthorn-event-type': 'plain' }, partition: 1 },
    ]);
    await eventually('what is behind both', () =>
      ['{"last":0}', '{"last":1}'].every((last) => bodies().includes(last)),
    );
    expect(bodies().filter((body) => body === value)).toHaveLength(1);
  });

  it('is accepted from a topic of its company that is made later', async () => {
    const own = companyTopicOf(posthorn.env.TOPIC_PREFIX, posthorn.companyId);
    await withAdmin(kafka, {}, (each) =>
      each.createTopics({ topics: [{ topic: own, numPartitions: 1, replicationFactor: 1 }] }),
    );
    const value = '{"from":"own topic"}';
    await produce([{ value, headers: { 'posthorn-webhook-id': target.webhookId } }], own);
    await eventually('the delivery', () => bodies().includes(value), 90_000);
  }, 120_000);
});

describe('the overview of the company', () => {
  const lagOf = async (client: ApiClient) =>
    ((await client.get('/api/v1/overview')).body.data as { ingestLag: number | null }).ingestLag;

  it('has the records that wait, and null where nothing is ingested', async () => {
    // An offset is committed within a quarter of a second, and the lag is read every ten seconds.
    await eventually('nothing waits', async () => (await lagOf(api)) === 0);
    expect(await lagOf(posthorn.api)).toBeNull();
  });
});

describe('a record that cannot be accepted', () => {
  const manyHeaders = Object.fromEntries(Array.from({ length: 4_000 }, (_, n) => [`h${n}`, '']));
  const headers = { 'posthorn-app-id': 'uid:later', 'posthorn-event-type': 'order.paid' };
  const early = '{"order":"of an app that is created later"}';

  it('is in the list of rejected records with its reason, and those behind it are accepted', async () => {
    const value = '{"behind":"the bad ones"}';
    await produce([
      { value: 'no JSON', partition: 0 },
      { value: null, partition: 0 },
      { value: '{}', headers: { 'posthorn-order-key': 'k' }, partition: 0 },
      // Kafkajs would take seconds to read these, without an end.
      { value: '{}', headers: manyHeaders, partition: 0 },
      { value: early, headers, partition: 0 },
      { value, headers: { 'posthorn-event-type': 'plain' }, partition: 0 },
    ]);
    await eventually('the record behind them', () => bodies().includes(value));
    // Those that are accepted come before those that are rejected.
    const found = await eventually('all of them', async () => {
      const all = await rejects();
      return all.length >= 5 ? all : null;
    });
    expect(found.map(({ code }) => code).toSorted()).toEqual([
      'invalid_json',
      'invalid_json',
      'invalid_request',
      'not_found',
      'unreadable',
    ]);
    expect(found.find(({ code }) => code === 'unreadable')?.message).toMatch(
      /^The record at \d+ has 4000 headers, more than 100 \(\d+ bytes\)\.$/,
    );
    expect(found.find(({ code }) => code === 'invalid_request')?.message).toContain(
      'posthorn-order-key: is not a header of an ingested record',
    );
    for (const [code, count] of [
      ['invalid_json', 2],
      ['not_found', 1],
    ] as const) {
      await untilMetric(ingesting, 'posthorn_ingest_rejected_total', code, count);
      expect(await metricOf(ingesting, 'posthorn_ingest_rejected_total', code)).toBe(count);
    }
  });

  it('is shown with its headers and its value', async () => {
    const found = (await rejects()).find(({ code }) => code === 'not_found');
    const id = [found?.partition, found?.offset].join(':');
    expect(await admin('rejected', 'show', id)).toMatchObject({
      code: 'not_found',
      headers: [
        { name: 'posthorn-app-id', text: 'uid:later' },
        { name: 'posthorn-event-type', text: 'order.paid' },
      ],
      value: { text: early },
    });
    await expect(admin('rejected', 'show', '0:999999')).rejects.toThrow(
      'There is no rejected record',
    );
  });

  it('is accepted once after its cause was mended, however often it is replayed', async () => {
    const { api } = posthorn;
    const { projectId } = target;
    const app = await api.post('/api/v1/apps', { name: 'Later', projectId, uid: 'later' });
    const { id: appId } = app.body.data as { id: string };
    await api.post('/api/v1/webhooks', { url: receiver.url, appId });
    const filters = ['--code', 'not_found', '--source', topic, '--since', '2026-01-01T00:00:00Z'];
    const replay = () => admin('rejected', 'replay', '--all', ...filters);
    const none = ['--source', topic, '--until', '2026-01-01T00:00:00Z'];
    expect(await admin('rejected', 'replay', '--all', ...none)).toMatchObject({ matched: 0 });
    expect(await admin('rejected', 'replay', '--all', '--dry-run')).toMatchObject({ replayed: 4 });
    expect(await replay()).toMatchObject({ matched: 1, replayed: 1 });
    // As when the first one was killed before it could say that it was done.
    await replay();
    await eventually('the delivery', () => bodies().includes(early));
    await eventually('both replays are read', async () => {
      const { partitions } = (await admin('lag')) as { partitions: { records: number }[] };
      return partitions.every(({ records }) => records === 0);
    });
    expect(await replay()).toMatchObject({ replayed: 0, skipped: { accepted: 1 } });
    expect(bodies().filter((body) => body === early)).toHaveLength(1);
    const events = await printedAuditEvents(posthorn.env, 'ingest_rejects.replayed');
    expect(events).toHaveLength(4);
  });
});

describe.each([
  ['known', []],
  ['validated', ['payload_invalid']],
] as const)('a record for a project with the policy %s', (policy, codes) => {
  it('is rejected when the catalogue does not have its event type or payload, and others are accepted', async () => {
    const { api } = posthorn;
    const made = await api.post('/api/v1/projects', { name: policy, eventTypePolicy: policy });
    const { id: projectId } = dataOf<{ id: string }>(made, 201);
    const schema = { type: 'object', required: ['amount'] };
    const catalogue = `/api/v1/projects/${projectId}/event-types`;
    dataOf(await api.post(catalogue, { name: 'order.paid', schema }), 201);
    dataOf(await api.post(catalogue, { name: 'order.old', archived: true }), 201);
    const app = await api.post('/api/v1/apps', { name: policy, projectId });
    const { id: appId } = dataOf<{ id: string }>(app, 201);
    dataOf(await api.post('/api/v1/webhooks', { url: receiver.url, appId }), 201);

    const record = (value: object, eventType?: string): KafkaRecord => ({
      value: JSON.stringify({ policy, ...value }),
      headers: {
        'posthorn-app-id': appId,
        ...(eventType !== undefined && { 'posthorn-event-type': eventType }),
      },
      partition: 0,
    });
    const good = record({ amount: 1 }, 'order.paid');
    const wrong = record({}, 'order.paid');
    const idOf = ({ partition, offset }: ShownReject): string => `${partition}:${offset}`;
    const before = new Set((await rejects()).map(idOf));
    const unknown = [
      record({ amount: 2 }, 'order.padi'),
      record({ amount: 3 }, 'order.old'),
      record({ amount: 4 }),
    ];
    await produce([...unknown, wrong, good]);
    await eventually('the good one', () => bodies().includes(String(good.value)));
    const wanted = [...unknown.map(() => 'event_type_unknown'), ...codes];
    const found = await eventually('the others', async () => {
      const own = (await rejects()).filter((each) => !before.has(idOf(each)));
      return own.length >= wanted.length ? own : null;
    });
    expect(found.map(({ code }) => code).toSorted()).toEqual(wanted.toSorted());
    expect(bodies().includes(String(wrong.value))).toBe(policy === 'known');
    const own = bodies().filter((body) => body.includes(`"policy":"${policy}"`));
    expect(own).toHaveLength(5 - wanted.length);
    for (const { message } of found.filter(({ code }) => code === 'payload_invalid')) {
      expect(message).toContain('payload.amount');
    }
  });
});

describe('ingestion', () => {
  it('goes on within 15 s after its process is killed, and accepts every record once and in order', async () => {
    const count = 1_600;
    const records = Array.from({ length: count }, (_, n): KafkaRecord => {
      return { value: `{"n":${n}}`, headers: { 'posthorn-event-type': 'plain' }, partition: n % 2 };
    });
    second = await posthorn.startProcess('ingest', settings);
    await produce(records.slice(0, count / 2));
    await eventually('some are accepted', async () => {
      const counts = await Promise.all(
        [ingesting, second].map((each) => metricOf(each, 'posthorn_ingest_accepted_total')),
      );
      return counts.reduce((sum, each) => sum + each) > 50;
    });
    await Promise.all([killHard(ingesting), produce(records.slice(count / 2))]);
    const found = (): Map<number, string[]> =>
      Map.groupBy(
        receiver.received.filter(({ body }) => body.toString().startsWith('{"n":')),
        ({ body }) => (JSON.parse(body.toString()) as { n: number }).n,
      ) as never;
    await eventually('all of them', () => found().size === count, 60_000);
    const ids = new Map(
      receiver.received
        .filter(({ body }) => body.toString().startsWith('{"n":'))
        .map(({ body, headers }) => [
          (JSON.parse(body.toString()) as { n: number }).n,
          String(headers['webhook-id']),
        ]),
    );
    for (const partition of [0, 1]) {
      const ofPartition = records.flatMap((_, n) =>
        n % 2 === partition ? [ids.get(n) ?? ''] : [],
      );
      expect(ofPartition).toEqual(ofPartition.toSorted());
    }
    const messages = new Set(
      receiver.received
        .filter(({ body }) => body.toString().startsWith('{"n":'))
        .map(({ headers }) => headers['webhook-id']),
    );
    expect(messages.size).toBe(count);
  }, 120_000);
});

describe('the lag of a partition', () => {
  interface ShownLag {
    topic: string;
    records: number;
    reason: string | null;
    because: string | null;
  }
  let idle: Record<string, string>;

  beforeAll(async () => {
    const { projectId } = target;
    // Without a webhook, so that nothing is delivered.
    const app = await posthorn.api.post('/api/v1/apps', { name: 'Idle', projectId });
    idle = { 'posthorn-app-id': (app.body.data as { id: string }).id };
  });

  const setStatus = (action: 'suspend' | 'resume') =>
    runProgram(ADMIN, ['company', action, posthorn.companyId], posthorn.env);

  async function behind(): Promise<ShownLag[]> {
    const { partitions } = (await admin('lag')) as { partitions: ShownLag[] };
    return partitions.filter((each) => each.topic === topic && each.records > 0);
  }

  /** Waits until all partitions with unread records have the reason, and returns the first one. */
  const behindBecause = (wanted: string): Promise<ShownLag> =>
    eventually(`the reason ${wanted}`, async () => {
      const all = await behind();
      return all.every(({ reason }) => reason === wanted) ? all[0] : null;
    });

  const produceIdle = (count: number) =>
    produce(Array.from({ length: count }, () => ({ value: '{}', headers: idle })));

  it('has the speed of a backlog that is being read', async () => {
    const found = await eventually('a backlog', async () => {
      await produceIdle(10_000);
      return (await behind()).find(({ reason }) => reason === 'backlog') ?? null;
    });
    expect(found.because).toMatch(/^Its records are being read, \d+ per second\.$/);
  });

  it('says that the company is suspended', async () => {
    await setStatus('suspend');
    await produceIdle(10);
    await behindBecause('company_suspended');
    await setStatus('resume');
    await eventually('nothing waits', async () => (await behind()).length === 0);
  });

  it('says that no process ingests, also in the overview', async () => {
    await second.stop();
    await produceIdle(1);
    const found = await behindBecause('no_process');
    expect(found.because).toBe('No process of posthorn ingest runs in this cluster.');
    await eventually('the overview', async () => {
      const overview = await api.get('/api/v1/overview');
      return dataOf<{ ingestLagReason: string | null }>(overview).ingestLagReason === 'no_process';
    });
  });
});
