import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createIdFactory } from '@posthorn/domain/ids.ts';
import { WEBHOOK_ID_HEADER } from '@posthorn/domain/ingest.ts';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import { createKeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createKafkaMetrics } from '@posthorn/platform/kafka/kafka-metrics.ts';
import { createGroupPositions } from '@posthorn/platform/kafka/offsets/group-positions.ts';
import { createCompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import { createPublisherStore } from '@posthorn/platform/mongo/messages/publishers.ts';
import { targetListOf } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { randomBytes } from 'node:crypto';
import { Registry } from 'prom-client';
import { openedWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../test/support/stores/scratch-database.ts';
import { openScratchLog, type ScratchLog } from '../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createAcceptMessages } from '../accept/accept-message.ts';
import { createKeyedAccept, type KeyedAccept } from '../accept/idempotency.ts';
import { startSlices } from '../limits/slices.ts';
import { createOutbox, type Outbox } from '../outbox/outbox.ts';
import { createUids } from '../projects/uids.ts';
import { createLaneDeps } from './accept-records.ts';
import { ClusterIngest, createIngestBudget } from './ingest.ts';
import { createIngestMetrics } from './ingest-metrics.ts';

const GROUP = `ordered-${process.pid}`;
const logger = createLogger('test', 'silent');
const monotonicMs = (): number => performance.now();
const newId = createIdFactory({ nowMs: Date.now, randomBytes });

let database: ScratchDatabase;
let log: ScratchLog;
let outbox: Outbox;
let ingest: ClusterIngest;
/** What Kafka is sent of messages waits for it. */
const kafkaIsBack = Promise.withResolvers<null>();

beforeAll(async () => {
  [database, log] = await Promise.all([openScratchDatabase(), openScratchLog()]);
});

afterAll(async () => {
  await ingest.stop(2_000);
  await outbox.stop(0);
  await Promise.all([database.drop(), log.close()]);
});

/** Opens the acceptance of messages to a webhook with `ordering`, as a process that ingests has it. */
async function openAccept(createdTopic: string): Promise<KeyedAccept['acceptMany']> {
  const { db } = database;
  outbox = createOutbox({
    topic: createdTopic,
    records: {
      async publish(records) {
        await kafkaIsBack.promise;
        await log.records.publish(records);
      },
    },
    messages: createMessageStore(db),
    publishers: createPublisherStore(db),
    publishQueueBytes: 1_048_576,
    newId,
    logger,
    nowMs: Date.now,
    monotonicMs,
  });
  await outbox.start();
  const webhook = openedWebhook(1, { ordering: 'block' });
  const shown = { signature: null, headers: [] };
  const responses = { seal: () => '', open: () => shown };
  const { accept } = createAcceptMessages({
    targets: { candidatesOf: () => Promise.resolve(targetListOf([webhook], webhook)) },
    checks: { check: () => Promise.resolve([]) },
    outbox,
    counts: { add: () => undefined, hasRoom: () => true },
    publisherId: outbox.publisherId,
    responses,
    retentionMs: db.days.retentionMs,
    acceptQueueBytes: 1_048_576,
    maxLingerMs: 0,
    newId,
    nowMs: Date.now,
    monotonicMs,
    logger,
  });
  const webhooks = { findTarget: () => Promise.resolve(webhook) };
  const messages = createMessageQueries(db);
  const registry = new Registry();
  return createKeyedAccept({ accept, messages, webhooks, responses, outbox, registry }).acceptMany;
}

function ingestOf(topic: string, acceptMany: KeyedAccept['acceptMany']): ClusterIngest {
  const { db } = database;
  const uids = createUids({ db, cacheBytes: 1_024, areChangesFollowed: () => true });
  const keepTrying = createKeepTrying({ logger, signal: new AbortController().signal });
  const shown = { sources: [topic], ready: () => new Map(), nowMs: Date.now };
  const laneDeps = createLaneDeps(
    {
      ...startSlices(monotonicMs),
      context: { logger, keepTryingWhileDraining: keepTrying },
      kafka: { publishCopies: log.records.publishCopies, topics: topicNames('', [], []) },
      limits: { takeMessages: (_companyId, granted) => ({ granted, waitMs: 0 }) },
      gateway: { acceptMany, db, messages: createMessageQueries(db), uids, nowMs: Date.now },
      life: createCompanyLife(db, Date.now),
      clock: { isRight: () => true },
      monotonicMs,
    },
    createIngestMetrics(new Registry(), shown),
  );
  return new ClusterIngest({
    kafka: log.kafka,
    groupId: GROUP,
    cluster: '',
    sources: [{ topic, companyId: 'comp_a' }],
    companyTopicsPrefix: null,
    ownTopics: new Set(),
    budget: createIngestBudget(33_554_432),
    laneDeps,
    onOutOfRange: () => undefined,
    areStoresUp: () => true,
    metrics: createKafkaMetrics(new Registry(), Date.now),
    monotonicMs,
    nowMs: Date.now,
    logger,
  });
}

/** See docs/contract.md C29.7. */
it('The offset of a record with an ordering key is committed when Kafka has the records of its message, that of another at once', async () => {
  const [source, created] = [await log.newTopic('orders', 2), await log.newTopic('created', 1)];
  ingest = ingestOf(source, await openAccept(created));
  const positions = createGroupPositions(log.kafka, { groupId: GROUP, topics: [source] });
  const committedIn = async (partition: number): Promise<number> => {
    const found = await positions.read([{ topic: source, partition }]);
    return Math.max(0, ...found.map(({ committed }) => committed));
  };
  const producer = log.kafka.producer();
  await producer.connect();
  const to = { [WEBHOOK_ID_HEADER]: openedWebhook(1).id };
  const messages = [
    { value: '{}', headers: { ...to, 'posthorn-ordering-key': 'order-1' }, partition: 0 },
    { value: '{}', headers: to, partition: 1 },
  ];
  await producer.send({ topic: source, acks: -1, messages });
  await producer.disconnect();
  ingest.start();
  const isStored = async (): Promise<boolean> =>
    (await database.db.days.messages.of(newId('msg')).countDocuments({})) === 2;
  await eventually('both messages are stored', isStored);
  await eventually('the other one is committed', async () => (await committedIn(1)) === 1);
  expect(await committedIn(0)).toBe(0);
  kafkaIsBack.resolve(null);
  await eventually('it is committed', async () => (await committedIn(0)) === 1);
  await positions.close();
});
