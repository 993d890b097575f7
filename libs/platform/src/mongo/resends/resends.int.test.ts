import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createResendStore, ResendMovedError, type ResendStore } from './resends.ts';

let database: ScratchDatabase;
let resends: ResendStore;

beforeAll(async () => {
  database = await openScratchDatabase();
  resends = createResendStore(database.db);
});

beforeEach(async () => {
  for (const name of ['resends', 'deliveries'] as const) {
    await collection(database.db, name).deleteMany({});
  }
});

afterAll(() => database.drop());

async function storeDelivery(
  _id: string,
  status: DeliveryStatus,
  { webhookId = 'wh_1', companyId = 'comp_a' } = {},
): Promise<void> {
  await collection(database.db, 'deliveries').insertOne({
    _id,
    messageId: `msg_${_id}`,
    webhookId,
    companyId,
    appId: null,
    status,
    reason: null,
    attemptCount: 7,
    attempts: [],
    nextAttemptAt: null,
    createdAt: new Date(1),
    updatedAt: new Date(1),
  });
}

describe('what a resend goes through', () => {
  beforeEach(async () => {
    await storeDelivery('dlv_1', 'exhausted');
    await storeDelivery('dlv_2', 'cancelled');
    await storeDelivery('dlv_3', 'delivered');
    await storeDelivery('dlv_4', 'pending');
    await storeDelivery('dlv_5', 'exhausted');
    await storeDelivery('dlv_6', 'exhausted', { webhookId: 'wh_2' });
    await storeDelivery('dlv_7', 'exhausted', { companyId: 'comp_b' });
  });

  it('is what failed of its webhook and company, oldest first', async () => {
    const resend = sampleResend('rsnd_1');
    expect(await resends.nextPage(resend, 9)).toEqual(['dlv_1', 'dlv_2', 'dlv_5']);
    expect(await resends.nextPage(resend, 2)).toEqual(['dlv_1', 'dlv_2']);
    expect(await resends.count(resend)).toBe(3);
  });

  it('lies between its bounds, both excluded', async () => {
    const resend = sampleResend('rsnd_1', { afterId: 'dlv_1', beforeId: 'dlv_5' });
    expect(await resends.nextPage(resend, 9)).toEqual(['dlv_2']);
    expect(await resends.count(resend)).toBe(1);
    const one = sampleResend('rsnd_2', { afterId: 'dlv_1', beforeId: 'dlv_1' });
    expect(await resends.nextPage(one, 9)).toEqual([]);
  });
});

describe('a resend in the store', () => {
  it('moves from page to page to its end', async () => {
    const resend = sampleResend('rsnd_1', { total: 4 });
    await resends.insert(resend);
    const begun = await resends.beginPage(resend, ['dlv_1', 'dlv_2'], 5);
    expect(begun).toEqual({ ...resend, page: ['dlv_1', 'dlv_2'], updatedAt: new Date(5) });
    const next = await resends.endPage(begun, { succeeded: 1, failed: 1 }, 6);
    expect(next).toMatchObject({ afterId: 'dlv_2', page: [], succeeded: 1, failed: 1, total: 4 });
    const last = await resends.beginPage(next, ['dlv_3'], 7);
    await resends.finish(await resends.endPage(last, { succeeded: 1, failed: 0 }, 8), 9);
    expect(await resends.findOne('comp_a', 'rsnd_1')).toEqual({
      ...resend,
      status: 'done',
      afterId: 'dlv_3',
      page: [],
      total: 3,
      succeeded: 2,
      failed: 1,
      updatedAt: new Date(9),
    });
  });

  it('is counted once by several who end the same page', async () => {
    const resend = sampleResend('rsnd_1');
    await resends.insert(resend);
    const begun = await resends.beginPage(resend, ['dlv_1'], 5);
    const result = { succeeded: 1, failed: 0 };
    const ends = Array.from({ length: 5 }, () => resends.endPage(begun, result, 6));
    const settled = await Promise.allSettled(ends);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const each of settled) {
      if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(ResendMovedError);
    }
    expect(await resends.findOne('comp_a', 'rsnd_1')).toMatchObject({ succeeded: 1, page: [] });
  });

  it('takes a page again from who takes over, and none from who was left behind', async () => {
    const resend = sampleResend('rsnd_1');
    await resends.insert(resend);
    const begun = await resends.beginPage(resend, ['dlv_1'], 5);
    expect(await resends.beginPage(begun, ['dlv_1'], 6)).toMatchObject({ page: ['dlv_1'] });
    await expect(resends.beginPage(resend, ['dlv_2'], 7)).rejects.toThrow(ResendMovedError);
    await resends.endPage(begun, { succeeded: 0, failed: 1 }, 8);
    await expect(resends.finish(resend, 9)).rejects.toThrow(ResendMovedError);
  });

  it('cannot be moved once it was removed', async () => {
    const resend = sampleResend('rsnd_1');
    await resends.insert(resend);
    await resends.remove(resend);
    await expect(resends.beginPage(resend, ['dlv_1'], 5)).rejects.toThrow(ResendMovedError);
  });

  it('is listed while it runs, oldest first, and shown to its company only', async () => {
    await resends.insert(sampleResend('rsnd_2', { companyId: 'comp_b' }));
    await resends.insert(sampleResend('rsnd_1'));
    await resends.insert(sampleResend('rsnd_0', { status: 'done' }));
    const running = async (afterId: string, limit: number) =>
      (await resends.listRunning(afterId, limit)).map(({ _id }) => _id);
    expect(await running('', 9)).toEqual(['rsnd_1', 'rsnd_2']);
    expect(await running('', 1)).toEqual(['rsnd_1']);
    expect(await running('rsnd_1', 9)).toEqual(['rsnd_2']);
    expect(await resends.findOne('comp_a', 'rsnd_2')).toBeNull();
    expect(await resends.findOne('comp_b', 'rsnd_2')).toMatchObject({ _id: 'rsnd_2' });
  });
});
