import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { stuckDeliveryContract } from '../../../../../test/support/contract/stuck-delivery-contract.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../documents/collections.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createStuckDeliveries } from './stuck-deliveries.ts';

stuckDeliveryContract(async () => {
  const { db, drop } = await openScratchDatabase();
  return {
    stuck: createStuckDeliveries(db),
    deliveries: createDeliveryStore(db),
    async clear() {
      await collection(db, 'deliveries').deleteMany({});
    },
    close: drop,
  };
});

describe('the queries for stuck deliveries', () => {
  let database: ScratchDatabase;

  beforeAll(async () => {
    database = await openScratchDatabase();
  });

  afterAll(() => database.drop());

  it.each([
    ['overdue', { nextAttemptAt: { $lt: new Date(5) } }, { nextAttemptAt: 1 } as const],
    ['unended', { nextAttemptAt: null, updatedAt: { $lt: new Date(5) } }, {}],
  ])('are served by an index of pending ones only: %s', async (_what, which, sort) => {
    const found = collection(database.db, 'deliveries').find({ status: 'pending', ...which });
    const plan = JSON.stringify(await found.sort(sort).limit(1).explain('queryPlanner'));
    expect(plan).toContain('"indexName":"nextAttemptAt_1_updatedAt_1"');
    expect(plan).not.toMatch(/"COLLSCAN"|"SORT"/);
  });
});
