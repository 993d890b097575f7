import { beforeAll, expect, it } from '@jest/globals';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { DAY_MS, dayNumberOf, firstIdAt } from '@posthorn/domain/ids.ts';
import { type Database, withDays } from '@posthorn/platform/mongo/days/days.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { openScratchDays } from '../../../../test/support/stores/scratch-database.ts';
import { readPending } from './counts.ts';

const TODAY = dayNumberOf(Date.now()) * DAY_MS;
const TIMES = [TODAY - DAY_MS, TODAY - 2, TODAY - 1, TODAY];

const database = duringTests(openScratchDays, ({ drop }) => drop());

/** Pending deliveries, of two webhooks in turn. */
beforeAll(async () => {
  const settled = TIMES.map((ms, n) => {
    const message = sampleMessage(`${firstIdAt('msg', ms)}${'0'.repeat(16)}`);
    const webhookId = `wh_${n % 2}`;
    return { ...unattemptedDelivery(message, webhookId, 1), status: 'pending' as const };
  });
  await createDeliveryStore(database.db).insertAll(settled);
  const webhooks = collection(database.db, 'webhooks');
  for (const _id of ['wh_0', 'wh_1', 'wh_2']) {
    await webhooks.insertOne({ _id, companyId: 'comp_a', appId: 'app_1' } as never);
  }
});

const owners = [
  { companyId: 'comp_a' },
  { companyId: 'comp_a', appId: 'app_1' },
  { companyId: 'comp_a', webhookId: 'wh_0' },
  { companyId: 'comp_a', webhookId: 'wh_2' },
  { companyId: 'comp_b' },
];

function readAllAt(db: Database) {
  return Promise.all(owners.map((owner) => readPending(db, owner)));
}

it('counts what is pending in every day, with the oldest one', async () => {
  const [oldest] = TIMES;
  expect(await readAllAt(database.db)).toEqual([
    { count: 4, oldestAtMs: oldest },
    { count: 4, oldestAtMs: oldest },
    { count: 2, oldestAtMs: oldest },
    { count: 0, oldestAtMs: null },
    { count: 0, oldestAtMs: null },
  ]);
});

it('leaves out what has expired while its day is still there', async () => {
  const layout = { beginMs: 0, retentionMs: DAY_MS / 2 };
  const nowMs = (): number => TODAY + DAY_MS / 2 - 1;
  const later = withDays(Object.create(database.db) as Database, {
    layout: () => layout,
    nowMs,
    earlierMs: nowMs,
  });
  expect(await readAllAt(later)).toEqual([
    { count: 2, oldestAtMs: TODAY - 1 },
    { count: 2, oldestAtMs: TODAY - 1 },
    { count: 1, oldestAtMs: TODAY - 1 },
    { count: 0, oldestAtMs: null },
    { count: 0, oldestAtMs: null },
  ]);
});
