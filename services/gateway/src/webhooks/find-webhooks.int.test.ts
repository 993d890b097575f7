import { beforeAll, expect, it } from '@jest/globals';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { createVault } from '@posthorn/platform/security/vault.ts';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { randomKey, sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { findWebhooks } from './find-webhooks.ts';

const WEBHOOKS = 250;
const EVENT_TYPES = ['e'.repeat(1_000)];
const COMPANY = sampleWebhook(1).companyId;

const scratch = duringTests(openScratchDatabase, ({ drop }) => drop());

beforeAll(async () => {
  const webhooks = createWebhookStore(scratch.db, createVault([randomKey('k1')]));
  await webhooks.insert(sampleWebhook(1, { eventTypes: EVENT_TYPES }));
  const stored = collection(scratch.db, 'webhooks');
  const first = await stored.findOne({});
  if (!first) throw new Error('The webhook is not stored');
  const ids = Array.from({ length: WEBHOOKS }, (_, n) => `wh_${String(n).padStart(5, '0')}`);
  await stored.deleteMany({});
  await stored.insertMany(ids.map((_id) => ({ ...first, _id })));
});

it('takes a turn for each hundred webhooks that a search looks at, charged with what was read', async () => {
  const laterMs: number[] = [];
  const nextSlice = (ms = 0): Promise<void> => Promise.resolve(void laterMs.push(ms));
  const search = { text: 'in no webhook', limit: 20 };
  expect(await findWebhooks(scratch.db, COMPANY, search, nextSlice)).toEqual({
    webhooks: [],
    nextCursor: null,
  });
  expect(laterMs).toHaveLength(3);
  for (const ms of laterMs.slice(0, 2)) expect(ms).toBeGreaterThan(100_000 / 32_768);
});

it('reads no more than a page where every webhook is wanted', async () => {
  let turns = 0;
  const nextSlice = (): Promise<void> => Promise.resolve(void (turns += 1));
  const { webhooks, nextCursor } = await findWebhooks(
    scratch.db,
    COMPANY,
    { limit: 20 },
    nextSlice,
  );
  expect([webhooks.length, webhooks[0]?.id, nextCursor]).toEqual([20, 'wh_00249', 'wh_00230']);
  expect(turns).toBe(1);
});
