import { beforeAll, describe, expect, it } from '@jest/globals';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import type { Attempt } from '@posthorn/domain/delivery/delivery.ts';
import {
  createDeliveryStore,
  type DeliveryStore,
} from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createDeliveryQueries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import { duringTests } from '../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../test/support/stores/scratch-database.ts';
import { createRecordAttempts, type RecordAttempts } from './settle.ts';

const OWNER = { messageId: 'msg_1', webhookId: 'wh_1', companyId: 'comp_a', appId: null };

function settled(id: string, number: number, outcome: Attempt['outcome']): SettledDelivery {
  const status = outcome === 'success' ? 'delivered' : 'pending';
  const answer = { statusCode: null, response: null, responseHeaders: [] };
  return {
    id,
    ...OWNER,
    status,
    reason: null,
    nextAttemptAtMs: null,
    createdAtMs: 1,
    updatedAtMs: number,
    attempt: {
      id: `att_${id}_${number}`,
      number,
      trigger: 'first',
      outcome,
      ...answer,
      startedAtMs: 1,
      durationMs: 1,
    },
  };
}

describe('an attempt that was under way when its delivery was cancelled', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let store: DeliveryStore;
  let record: RecordAttempts;

  beforeAll(() => {
    store = createDeliveryStore(database.db);
    record = createRecordAttempts(store);
  });

  async function cancelAfterFirst(id: string): Promise<void> {
    await record([settled(id, 1, 'http_5xx')]);
    await store.cancelPending([{ id, reason: 'webhook_deleted', atMs: 2 }]);
  }

  const read = async (id: string) =>
    (await createDeliveryQueries(database.db).findMany('comp_a', [id]))[0];

  it('is recorded; a failure leaves the delivery cancelled and is not published', async () => {
    await cancelAfterFirst('dlv_1');
    expect(await record([settled('dlv_1', 2, 'timeout')])).toEqual(new Set());
    const found = await read('dlv_1');
    expect(found).toMatchObject({ status: 'cancelled', reason: 'webhook_deleted' });
    expect(found?.attempts.map(({ outcome }) => outcome)).toEqual(['http_5xx', 'timeout']);
  });

  it('makes the delivery delivered when it succeeded, and is recorded once', async () => {
    await cancelAfterFirst('dlv_2');
    await record([settled('dlv_2', 2, 'success')]);
    await record([settled('dlv_2', 2, 'success')]);
    const found = await read('dlv_2');
    expect(found).toMatchObject({ status: 'delivered', reason: null });
    expect(found?.attempts.map(({ number }) => number)).toEqual([1, 2]);
  });

  it('ends the delivery when the webhook was deleted meanwhile, and is not published', async () => {
    const ended = { status: 'cancelled', reason: 'webhook_deleted' } as const;
    expect(await record([{ ...settled('dlv_3', 1, 'timeout'), ...ended }])).toEqual(new Set());
    await record([settled('dlv_4', 1, 'http_5xx')]);
    expect(await record([{ ...settled('dlv_4', 2, 'timeout'), ...ended }])).toEqual(new Set());
    expect(await read('dlv_3')).toMatchObject({ ...ended, attempts: [{ outcome: 'timeout' }] });
    const attempts = [{ outcome: 'http_5xx' }, { outcome: 'timeout' }];
    expect(await read('dlv_4')).toMatchObject({ ...ended, attempts });
  });
});
