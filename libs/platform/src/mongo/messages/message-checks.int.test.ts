import { expect, it } from '@jest/globals';
import { messageCheckContract } from '../../../../../test/support/contract/message-check-contract.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { openFreshDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createIndexes } from '../create-indexes.ts';
import { createDeliveryStore } from './deliveries.ts';
import { createMessageChecks, shareOf } from './message-checks.ts';
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
