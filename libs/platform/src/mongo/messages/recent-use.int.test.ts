import { expect, it } from '@jest/globals';
import { unattemptedDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openFreshDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createDeliveryStore } from './deliveries.ts';
import { readRecentUse } from './recent-use.ts';

it('what was used last is read from the newest deliveries of today and yesterday', async () => {
  const { db, drop } = await openFreshDatabase();
  const used = [
    { ageMs: 86_400_000, companyId: 'comp_b', appId: 'app_2', webhookId: 'wh_2' },
    { ageMs: 3_000, companyId: 'comp_a', appId: 'app_1', webhookId: 'wh_1' },
    { ageMs: 2_000, companyId: 'comp_a', appId: null, webhookId: 'wh_global' },
    { ageMs: 1_000, companyId: 'comp_a', appId: 'app_1', webhookId: 'wh_1' },
  ];
  await createDeliveryStore(db).insertAll(
    used.map(({ ageMs, companyId, appId, webhookId }) => {
      const id = countingIds(Date.now() - ageMs)('msg');
      return unattemptedDelivery(sampleMessage(id, { companyId, appId }), webhookId, 1);
    }),
  );
  expect(await readRecentUse(db)).toEqual({
    companyIds: ['comp_a', 'comp_b'],
    apps: [
      { companyId: 'comp_a', appId: 'app_1' },
      { companyId: 'comp_b', appId: 'app_2' },
    ],
    webhookIds: ['wh_1', 'wh_global', 'wh_2'],
  });
  await drop();
});
