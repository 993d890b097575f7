import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomKey, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../test/support/stores/scratch-database.ts';
import { createVault } from '../security/vault.ts';
import { collection } from './collections.ts';
import type { AppDocument } from './documents.ts';
import { createExists, createInsertTogether } from './write-together.ts';
import { createWebhookStore } from './webhooks/webhooks.ts';

let database: ScratchDatabase;

beforeAll(async () => {
  database = await openScratchDatabase();
});

afterAll(() => database.drop());

const app = (n: number, changes: Partial<AppDocument> = {}): AppDocument => ({
  _id: `app_${n}`,
  companyId: 'comp_a',
  projectId: 'proj_1',
  name: 'a',
  description: '',
  environment: 'production',
  createdAt: new Date(1),
  updatedAt: new Date(1),
  ...changes,
});

it('what is inserted at the same time is stored, and what is refused gets the error of its own', async () => {
  const insert = createInsertTogether(database.db, 'apps');
  const given = [app(1, { uid: 'same' }), app(2, { uid: 'same' }), app(3), app(3), app(4)];
  const results = await Promise.allSettled(given.map(insert));
  expect(results.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
  expect(results[1]).toMatchObject({ reason: { code: 11_000, keyPattern: { uid: 1 } } });
  expect(results[3]).toMatchObject({ reason: { code: 11_000, keyPattern: { _id: 1 } } });
  await expect(insert(app(5, { uid: 'same' }))).rejects.toMatchObject({ keyPattern: { uid: 1 } });
  const stored = await collection(database.db, 'apps').find({}).sort({ _id: 1 }).toArray();
  expect(stored.map(({ _id }) => _id)).toEqual(['app_1', 'app_3', 'app_4']);
});

it('what cannot be encoded fails alone', async () => {
  const insert = createInsertTogether(database.db, 'apps');
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const given = [app(6), { ...app(7), metadata: circle } as unknown as AppDocument, app(8)];
  const results = await Promise.allSettled(given.map(insert));
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

it('a webhook that is inserted beside others is refused for its uid alone', async () => {
  const store = createWebhookStore(database.db, createVault([randomKey('k1')]));
  const [first, second] = [1, 2].map((n) => sampleWebhook(n, { uid: 'same' }));
  const other = sampleWebhook(3);
  const results = await Promise.allSettled(
    [first, second, other].map((each) => store.insert(each ?? other)),
  );
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

it('what exists is found by its company, also after it was asked for together', async () => {
  const exists = createExists(database.db, 'apps');
  const asked = ['app_1', 'app_2', 'app_3'].map((id) => exists('comp_a', id));
  const found = await Promise.all([...asked, exists('comp_b', 'app_1')]);
  expect(found).toEqual([true, false, true, false]);
});
