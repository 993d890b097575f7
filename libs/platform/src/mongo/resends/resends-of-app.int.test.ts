import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { DeliveryStatus } from '@posthorn/domain/delivery.ts';
import { sampleResend } from '../../../../../test/support/memory/memory-resends.ts';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { createResendStore, type Resend, type ResendStore } from './resends.ts';
import { partFor } from './resends-of-app.ts';

let database: ScratchDatabase;
let resends: ResendStore;

beforeAll(async () => {
  database = await openScratchDatabase();
  resends = createResendStore(database.db);
});

beforeEach(async () => {
  for (const name of ['resends', 'deliveries', 'webhooks'] as const) {
    await collection(database.db, name).deleteMany({});
  }
});

afterAll(() => database.drop());

const ofApp = (id = 'rsnd_1', overrides: Partial<Resend> = {}): Resend =>
  sampleResend(id, { appId: 'app_1', webhookId: null, ...overrides });

async function storeWebhook(_id: string, changes: object = {}): Promise<void> {
  const owner = { companyId: 'comp_a', projectId: 'proj_1', appId: 'app_1' };
  const webhook = { _id, ...owner, disabled: false, ...changes };
  // The rest of it is not read here.
  await collection(database.db, 'webhooks').insertOne(webhook as never);
}

async function storeDelivery(
  _id: string,
  webhookId: string,
  status: DeliveryStatus = 'exhausted',
): Promise<void> {
  await collection(database.db, 'deliveries').insertOne({
    _id,
    messageId: `msg_${_id}`,
    webhookId,
    companyId: 'comp_a',
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

describe('a resend of an app in the store', () => {
  it('is there once while it runs, and again behind its end', async () => {
    const first = ofApp('rsnd_1');
    expect(await resends.insert(first)).toBe(true);
    expect(await resends.insert(ofApp('rsnd_2'))).toBe(false);
    expect(await resends.insert(ofApp('rsnd_3', { appId: 'app_2' }))).toBe(true);
    await resends.finish(first, 5);
    expect(await resends.insert(ofApp('rsnd_2'))).toBe(true);
  });

  it('counts what failed of the enabled webhooks of the app and company', async () => {
    await storeWebhook('wh_1');
    await storeWebhook('wh_2');
    await storeWebhook('wh_3', { disabled: true });
    await storeWebhook('wh_4', { appId: 'app_2' });
    await storeWebhook('wh_5', { companyId: 'comp_b' });
    for (const n of [1, 2, 3, 4, 5]) await storeDelivery(`dlv_${n}`, `wh_${n}`);
    await storeDelivery('dlv_6', 'wh_2', 'cancelled');
    await storeDelivery('dlv_7', 'wh_2', 'delivered');
    expect(await resends.count(ofApp())).toBe(3);
    expect(await resends.count(ofApp('rsnd_1', { afterId: 'dlv_1' }))).toBe(2);
    expect(await resends.nextPage(ofApp(), 9)).toEqual([]);
    expect(await resends.webhooksBehind(ofApp(), '', 1)).toEqual(['wh_1']);
    expect(await resends.webhooksBehind(ofApp(), 'wh_1', 9)).toEqual(['wh_2']);
  });
});

describe('the parts of a resend of an app', () => {
  const part = (webhookId: string) => partFor(ofApp(), webhookId, 3);

  it('exist once each, and are listed until they are finished', async () => {
    await resends.insert(ofApp());
    expect(await resends.lastWebhook(ofApp())).toBe('');
    for (const webhookId of ['wh_1', 'wh_2']) await resends.insert(part(webhookId));
    expect(await resends.insert(part('wh_1'))).toBe(false);
    expect(await resends.insert(partFor(ofApp('rsnd_2'), 'wh_9', 3))).toBe(true);
    await resends.finish(part('wh_2'), 5);
    expect(await resends.openParts(ofApp())).toEqual([part('wh_1')]);
    expect(await resends.lastWebhook(ofApp())).toBe('wh_2');
    // Whoever takes over takes the whole.
    expect((await resends.listRunning('', 9)).map(({ _id }) => _id)).toEqual(['rsnd_1']);
  });

  it('are added up for who asks, shown to its company only, and gone behind the end', async () => {
    await resends.insert(ofApp());
    for (const [webhookId, succeeded, failed] of [
      ['wh_1', 2, 0] as const,
      ['wh_2', 5, 1] as const,
    ]) {
      await resends.insert(part(webhookId));
      await resends.endPage(part(webhookId), { succeeded, failed }, 4 + failed);
    }
    const sums = { succeeded: 7, failed: 1, updatedAt: new Date(5) };
    expect(await resends.findShown('comp_a', 'rsnd_1')).toEqual({ ...ofApp(), ...sums });
    expect(await resends.findShown('comp_b', 'rsnd_1')).toBeNull();
    expect(await resends.findShown('comp_a', part('wh_1')._id)).toBeNull();
    await resends.finish({ ...ofApp(), ...sums }, 9);
    const end = { ...sums, total: 8, status: 'done', updatedAt: new Date(9) };
    expect(await resends.findShown('comp_a', 'rsnd_1')).toEqual({ ...ofApp(), ...end });
    expect(await collection(database.db, 'resends').countDocuments()).toBe(1);
  });
});
