import { expect, it } from '@jest/globals';
import type { DeliveryStatus, Outcome } from '@posthorn/domain/delivery/delivery.ts';
import { resendContract } from '../../../../../test/support/contract/resend-contract.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleResend, YEAR_2100_MS } from '../../../../../test/support/memory/memory-resends.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import type { AttemptDocument, DeliveryDocument } from '../documents.ts';
import { createResendStore, heldResends } from './resends.ts';

type Db = ScratchDatabase['db'];

function delivery(
  _id: string,
  status: DeliveryStatus,
  owner: { webhookId?: string; companyId?: string; lastOutcome?: Outcome } = {},
): DeliveryDocument {
  const { webhookId = 'wh_1', companyId = 'comp_a', lastOutcome = 'http_5xx' } = owner;
  return {
    _id,
    messageId: `msg_${_id}`,
    webhookId,
    companyId,
    appId: null,
    status,
    reason: null,
    attemptCount: 7,
    attempts: [attempt(1, 'connect_error'), attempt(2, lastOutcome)],
    nextAttemptAt: null,
    createdAt: new Date(),
    updatedAt: new Date(1),
  };
}

function attempt(number: number, outcome: Outcome): AttemptDocument {
  return {
    id: `att_${number}`,
    number,
    trigger: 'retry',
    outcome,
    statusCode: null,
    response: null,
    responseHeaders: [],
    startedAt: new Date(1),
    durationMs: 1,
  };
}

async function storeWebhook(db: Db, _id: string, changes: object = {}): Promise<void> {
  const owner = { companyId: 'comp_a', projectId: 'proj_1', appId: 'app_1' };
  const webhook = { _id, ...owner, disabled: false, ...changes };
  // The store of resends reads no other fields.
  await collection(db, 'webhooks').insertOne(webhook as never);
}

resendContract(async () => {
  const { db, drop } = await openScratchDatabase();
  return {
    resends: createResendStore(db),
    async clear() {
      for (const name of ['resends', 'deliveries', 'webhooks'] as const) {
        await collection(db, name).deleteMany({});
      }
    },
    async addDelivery(id, status, owner) {
      await collection(db, 'deliveries').insertOne(delivery(id, status, owner));
    },
    addWebhook: (id) => storeWebhook(db, id),
    close: drop,
  };
});

const database = duringTests(openScratchDatabase, ({ drop }) => drop());

it('a resend of an app counts the failed deliveries of the enabled webhooks of its app and company', async () => {
  const { db } = database;
  const resends = createResendStore(db);
  await storeWebhook(db, 'wh_1');
  await storeWebhook(db, 'wh_2');
  await storeWebhook(db, 'wh_3', { disabled: true });
  await storeWebhook(db, 'wh_4', { appId: 'app_2' });
  await storeWebhook(db, 'wh_5', { companyId: 'comp_b' });
  await collection(db, 'deliveries').insertMany([
    ...[1, 2, 3, 4, 5].map((n) => delivery(`dlv_${n}`, 'exhausted', { webhookId: `wh_${n}` })),
    delivery('dlv_6', 'cancelled', { webhookId: 'wh_2' }),
    delivery('dlv_7', 'delivered', { webhookId: 'wh_2' }),
  ]);
  const ofApp = sampleResend('rsnd_1', { appId: 'app_1', webhookId: null });
  expect(await resends.count(ofApp)).toBe(3);
  const limited = createResendStore(db, 2);
  expect([await limited.count(ofApp), await limited.countAll(ofApp)]).toEqual([2, 3]);
  expect(await resends.webhooksAfter(ofApp, '', 9)).toEqual(['wh_1', 'wh_2']);
});

it('a resend is stored without the owners that it does not have', async () => {
  await createResendStore(database.db).insert(sampleResend('rsnd_9'));
  const stored = await collection(database.db, 'resends').findOne({ _id: 'rsnd_9' });
  expect(stored).not.toHaveProperty('appId');
  expect(stored).not.toHaveProperty('partOf');
  expect(stored).toMatchObject({ createdAt: new Date(YEAR_2100_MS), updatedAt: new Date(1) });
});

it('a replay is claimed beside resends that are always due', async () => {
  const { db } = database;
  await collection(db, 'resends').deleteMany({});
  const resends = createResendStore(db);
  await resends.insert(sampleResend('rsnd_1', { webhookId: 'wh_1', dueAtMs: 1 }));
  await resends.insert(sampleResend('rsnd_2', { webhookId: 'wh_2', kind: 'replay', dueAtMs: 9 }));
  const claimed = new Set<string | undefined>();
  for (const nowMs of [10, 20]) {
    const note = await resends.claim({ claim: 'c', nowMs, untilMs: nowMs, exceptCompanyIds: [] });
    claimed.add(note?.id);
  }
  expect(claimed).toEqual(new Set(['rsnd_1', 'rsnd_2']));
});

it('finds those on hold by an index of their own, of a webhook and of a company', async () => {
  const { db, drop } = await openScratchDatabase();
  const resends = collection(db, 'resends');
  // What the query reads of a resend, and the fields that its unique indexes need.
  const documents = Array.from({ length: 200 }, (_, n) => ({
    _id: `rsnd_${n}`,
    companyId: 'comp_a',
    webhookId: 'wh_1',
    createdAt: new Date(),
    ...(n === 0 ? { status: 'running', progress: { isHeld: true } } : { status: 'done' }),
  }));
  await resends.insertMany(documents as never);
  for (const webhookId of ['wh_1', null]) {
    const found = resends.find({ companyId: 'comp_a', ...heldResends(webhookId) });
    const { executionStats } = (await found.explain('executionStats')) as {
      executionStats: { nReturned: number; totalDocsExamined: number; totalKeysExamined: number };
    };
    expect(executionStats).toMatchObject({ nReturned: 1, totalDocsExamined: 1 });
    expect(executionStats.totalKeysExamined).toBeLessThan(3);
  }
  await drop();
});

it('a page of a resend looks at 10,000 failed deliveries at most, and says how far it came', async () => {
  const { db } = database;
  const resends = createResendStore(db);
  const owner = { webhookId: 'wh_many' };
  const idAt = (n: number): string => `dlv_many_${String(n).padStart(5, '0')}`;
  await collection(db, 'deliveries').insertMany([
    ...Array.from({ length: 10_000 }, (_, n) => delivery(idAt(n), 'exhausted', owner)),
    delivery(idAt(10_000), 'exhausted', { ...owner, lastOutcome: 'timeout' }),
  ]);
  const resend = sampleResend('rsnd_many', { ...owner, outcome: 'timeout' });
  const first = await resends.nextPage(resend, 5);
  expect(first).toEqual({ ids: [], lookedTo: idAt(9_999) });
  const second = await resends.nextPage({ ...resend, afterId: idAt(9_999) }, 5);
  expect(second).toEqual({ ids: [idAt(10_000)], lookedTo: null });
});
