import { expect, it } from '@jest/globals';
import { finishedResendContract } from '../../../../../test/support/contract/finished-resend-contract.ts';
import { resendMarkContract } from '../../../../../test/support/contract/resend-mark-contract.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import type { DeliveryDocument } from '../documents.ts';
import { createResendMarks } from './resend-marks.ts';

function delivery(_id: string, changes: Partial<DeliveryDocument> = {}): DeliveryDocument {
  return {
    _id,
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_a',
    appId: 'app_1',
    status: 'exhausted',
    reason: null,
    attemptCount: 7,
    attempts: [],
    nextAttemptAt: null,
    createdAt: new Date(),
    updatedAt: new Date(2),
    ...changes,
  };
}

resendMarkContract(async () => {
  const { db, drop } = await openScratchDatabase();
  const marks = createResendMarks(db);
  const deliveries = collection(db, 'deliveries');
  return {
    marks,
    async clear() {
      await deliveries.deleteMany({});
    },
    async add(id, status, companyId = 'comp_a') {
      await deliveries.insertOne(delivery(id, { status, companyId }));
    },
    async settle(deliveryId, isSuccess) {
      const number = (await marks.askedNumbers([deliveryId])).get(deliveryId) ?? NaN;
      const outcome = isSuccess ? ('success' as const) : ('http_5xx' as const);
      const attempt = {
        id: `att_${number}`,
        number,
        trigger: 'resend' as const,
        outcome,
        statusCode: null,
        response: null,
        responseHeaders: [],
        startedAtMs: 3,
        durationMs: 1,
      };
      await marks.finish([{ deliveryId, attemptNumber: number, attempt, atMs: 9 }]);
    },
    close: drop,
  };
});

finishedResendContract(async () => {
  const { db, drop } = await openScratchDatabase();
  const deliveries = collection(db, 'deliveries');
  return {
    marks: createResendMarks(db),
    async put({ _id, ...rest }) {
      await deliveries.replaceOne({ _id }, rest, { upsert: true });
    },
    read: (_id) => deliveries.findOne({ _id }),
    close: drop,
  };
});

const database = duringTests(openScratchDatabase, ({ drop }) => drop());

it('a delivery is granted to one of two resends that ask at once', async () => {
  const marks = createResendMarks(database.db);
  await collection(database.db, 'deliveries').insertOne(delivery('dlv_1'));
  const both = ['rsnd_1', 'rsnd_2'];
  await Promise.all(both.map((id) => marks.ask(sampleResend(id, { page: ['dlv_1'] }))));
  const [found] = await marks.read('comp_a', ['dlv_1']);
  expect(both).toContain(found?.mark?.resendId);
});

it('a marked delivery has everything that a record needs', async () => {
  const stored = delivery('dlv_2');
  await collection(database.db, 'deliveries').insertOne(stored);
  const marks = createResendMarks(database.db);
  expect(await marks.read('comp_a', ['dlv_2', 'dlv_none'])).toEqual([
    {
      id: 'dlv_2',
      messageId: 'msg_1',
      webhookId: 'wh_1',
      companyId: 'comp_a',
      appId: 'app_1',
      createdAtMs: stored.createdAt.getTime(),
      status: 'exhausted',
      attemptCount: 7,
      mark: null,
    },
  ]);
});
