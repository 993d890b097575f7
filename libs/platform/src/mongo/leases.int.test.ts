import { expect, it } from '@jest/globals';
import { leaseContract } from '../../../../test/support/contract/lease-contract.ts';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { collection } from './collections.ts';
import { createLeaseStore } from './leases.ts';

leaseContract(async () => {
  const { db, drop } = await openScratchDatabase();
  return {
    leases: createLeaseStore(db),
    async expire(name) {
      const expiresAt = new Date(Date.now() - 1_000);
      await collection(db, 'leases').updateOne({ _id: name }, { $set: { expiresAt } });
    },
    close: drop,
  };
});

const database = duringTests(openScratchDatabase, ({ drop }) => drop());

it('a lease expires after its time, by the clock of the database', async () => {
  const expired = createLeaseStore(database.db, -1);
  expect(await expired.hold('a', 'first')).toBe(true);
  expect(await expired.hold('a', 'second')).toBe(true);
});
