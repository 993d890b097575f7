import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { countingIds, sampleMessage } from '../../../../../test/support/samples/sample-message.ts';
import { collection } from '../collections.ts';
import type { DeliveryDocument, WebhookDocument } from '../documents.ts';
import { createMessageStore } from '../messages/messages.ts';
import {
  createFailingWebhooks,
  type FailingWebhook,
  type FailingWebhooks,
} from './failing-webhooks.ts';

const CHANGED_MS = Date.parse('2026-11-20T00:00:00Z');
const SINCE_MS = CHANGED_MS + 3_600_000;

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let webhooks: FailingWebhooks;

beforeAll(() => {
  webhooks = createFailingWebhooks(database.db);
});
beforeEach(async () => {
  for (const name of ['webhooks', 'messages', 'deliveries'] as const)
    await collection(database.db, name).deleteMany({});
  await collection(database.db, 'webhooks').insertOne({
    _id: 'wh_1',
    companyId: 'comp_a',
    disabled: false,
    updatedAt: new Date(CHANGED_MS),
  } as WebhookDocument);
});

async function found(): Promise<FailingWebhook> {
  const webhook = await webhooks.findOne('comp_a', 'wh_1');
  if (!webhook) throw new Error('there is no webhook');
  return webhook;
}

const CHANGE = { $set: { updatedAt: new Date(CHANGED_MS + 1) } };
const changeIt = () => collection(database.db, 'webhooks').updateOne({ _id: 'wh_1' }, CHANGE);

describe('a webhook that fails', () => {
  it('is found with what was told of it, by its own company', async () => {
    const told = { sinceMs: SINCE_MS, disableAtMs: SINCE_MS + 5 };
    await webhooks.markTold(await found(), told);
    expect(await found()).toEqual({
      id: 'wh_1',
      companyId: 'comp_a',
      disabled: false,
      changedAtMs: CHANGED_MS,
      told,
    });
    expect(await webhooks.findOne('comp_b', 'wh_1')).toBeNull();
  });

  it('stays as it is when a client changed it meanwhile', async () => {
    const seen = await found();
    await changeIt();
    await webhooks.markTold(seen, { sinceMs: SINCE_MS, disableAtMs: null });
    expect(await found()).toMatchObject({ disabled: false, told: null });
  });
});

describe('the deliveries of its newest messages', () => {
  const newId = countingIds();

  async function deliver(status: string, atMs: number, attemptCount = 1) {
    const messageId = newId('msg');
    await createMessageStore(database.db).insertAll([sampleMessage(messageId)]);
    const _id = deliveryIdOf(messageId, 'wh_1');
    const delivery = { _id, companyId: 'comp_a', webhookId: 'wh_1', status, attemptCount };
    await collection(database.db, 'deliveries').insertOne({
      ...delivery,
      updatedAt: new Date(atMs),
    } as DeliveryDocument);
  }
  const haveOnlyFailed = async () => webhooks.hasOnlyFailed(await found(), SINCE_MS);

  it('confirm that it only failed', async () => {
    await deliver('delivered', SINCE_MS - 1);
    await deliver('exhausted', SINCE_MS);
    await deliver('pending', SINCE_MS + 9);
    expect(await haveOnlyFailed()).toBe(true);
  });

  it('contradict it when one was delivered since', async () => {
    await deliver('exhausted', SINCE_MS);
    await deliver('delivered', SINCE_MS + 9);
    expect(await haveOnlyFailed()).toBe(false);
  });

  it('confirm nothing when none was attempted', async () => {
    expect(await haveOnlyFailed()).toBe(false);
    await deliver('cancelled', SINCE_MS + 9, 0);
    expect(await haveOnlyFailed()).toBe(false);
  });
});
