import { expect, it } from '@jest/globals';
import { createSettledSamples } from '../../../../../test/support/contract/settled-samples.ts';
import { openFreshDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createResendMarks } from '../webhooks/resend-marks.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createDeliveryQueries } from './delivery-queries.ts';

it('a delivery is never found by another company', async () => {
  const { db, drop } = await openFreshDatabase();
  const delivery = createSettledSamples()();
  await createDeliveryStore(db).insertAll([delivery]);
  expect(await createDeliveryQueries(db).findMany('comp_b', [delivery.id])).toEqual([]);
  await drop();
});

interface ProfiledRead {
  command: { readConcern?: { level: string } };
}

it('what decides whether an attempt is made is read as a majority has stored it', async () => {
  const { db, drop } = await openFreshDatabase();
  await db.command({ profile: 2 });
  const store = createDeliveryStore(db);
  await store.statesOf(['dlv_1']);
  await store.recordedOf(['dlv_1']);
  await createResendMarks(db).askedNumbers(['dlv_1']);
  await db.command({ profile: 0 });
  const profile = db.collection<ProfiledRead>('system.profile');
  const reads = await profile.find({ 'command.find': 'deliveries' }).toArray();
  const levels = reads.map(({ command }) => command.readConcern?.level);
  expect(levels).toEqual(['majority', 'majority', 'majority']);
  await drop();
});
