import { expect, it } from '@jest/globals';
import { firstIdAt } from '@posthorn/domain/ids.ts';
import { messageCheckContract } from '../../../../../test/support/contract/message-check-contract.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openFreshDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createIndexes } from '../create-indexes.ts';
import { createDeliveryStore } from './deliveries.ts';
import { CHECK_SHARES, createMessageChecks, shareOf } from './message-checks.ts';
import { createMessageStore } from './messages.ts';

messageCheckContract(async () => {
  const { db, drop } = await openFreshDatabase();
  return {
    checks: createMessageChecks(db),
    deliveries: createDeliveryStore(db),
    insert: createMessageStore(db).insertAll,
    async keepFor(days) {
      await createIndexes(db, { days, auditDays: 400 });
    },
    close: drop,
  };
});

it('the check of the messages reads no payloads', async () => {
  const { db, drop } = await openFreshDatabase();
  const id = countingIds(Date.now() - 1_000)('msg');
  await createMessageStore(db).insertAll([sampleMessage(id)]);
  const beforeMs = Date.now() + 1_000;
  const span = { share: shareOf(id), afterId: '', beforeMs, maxMessages: 1, maxTargets: 10 };
  for await (const page of createMessageChecks(db).pagesOf(span)) {
    const [found] = page.messages;
    expect(found?.id).toBe(id);
    expect(found).not.toHaveProperty('payload', expect.anything());
  }
  expect.assertions(2);
  await drop();
});

it('every share begins where the version before has ended', async () => {
  const { db, drop } = await openFreshDatabase();
  const checks = createMessageChecks(db);
  const id = countingIds(1_700_000_000_000)('msg');
  const completeTo = new Date(1_700_000_500_000);
  await collection(db, 'messageChecks').insertOne({ _id: 'messages', checkedTo: id, completeTo });
  const own = firstIdAt('msg', 1_700_000_600_000);
  await checks.markComplete(3, 1_700_000_700_000);
  await checks.markChecked(4, own);
  const begun = await Promise.all([0, 3, 4].map((share) => checks.checkedTo(share)));
  expect(begun).toEqual([id, id, own]);
  const { checkedToMs } = await checks.positions();
  expect(checkedToMs).toHaveLength(CHECK_SHARES);
  expect(checkedToMs.slice(2, 6)).toEqual([
    ...[1_700_000_500_000, 1_700_000_700_000, 1_700_000_600_000, 1_700_000_500_000],
  ]);
  await drop();
});
