import { expect, it } from '@jest/globals';
import { deliveryContract } from '../../../../../test/support/contract/delivery-contract.ts';
import { createSettledSamples } from '../../../../../test/support/contract/settled-samples.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createDeliveryQueries } from './delivery-queries.ts';

deliveryContract(async () => {
  const { db, drop } = await openScratchDatabase();
  const queries = createDeliveryQueries(db);
  return {
    store: createDeliveryStore(db),
    read: async (id) => (await queries.findMany('comp_a', [id]))[0],
    close: drop,
  };
});

it('a delivery is never found by another company', async () => {
  const { db, drop } = await openScratchDatabase();
  const delivery = createSettledSamples()();
  await createDeliveryStore(db).insertAll([delivery]);
  expect(await createDeliveryQueries(db).findMany('comp_b', [delivery.id])).toEqual([]);
  await drop();
});
