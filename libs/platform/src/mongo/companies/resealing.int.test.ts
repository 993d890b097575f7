import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { mongo } from 'mongoose';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createVault, type SealedValueError, type Vault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { createWebhookStore, type WebhookStore } from '../webhooks/webhooks.ts';
import { countByKey, resealWebhooks } from './resealing.ts';

const [OLD, NEW] = [randomKey('old'), randomKey('new')];
const COMPANY = 'comp_a';
const rotated = createVault([NEW, OLD]);

const unexpected = (problem: SealedValueError): void => {
  throw problem;
};

/** The database, with a change between the reads and the writes of a rotation. */
function changingBeforeWrites(db: mongo.Db, change: () => Promise<unknown>): mongo.Db {
  const webhooks = db.collection('webhooks');
  const bulkWrite = webhooks.bulkWrite.bind(webhooks);
  webhooks.bulkWrite = async (...args) => {
    await change();
    return bulkWrite(...args);
  };
  // A rotation uses no other collection.
  return { collection: () => webhooks } as unknown as mongo.Db;
}

/** Fails at the nth webhook, as if the process ended there. */
function endingAt(nth: number): Vault {
  let sealed = 0;
  const seal: Vault['seal'] = (plain, binding) => {
    if (binding.field === 'secret') sealed += 1;
    if (sealed === nth) throw new Error('interrupted');
    return rotated.seal(plain, binding);
  };
  return { ...rotated, seal };
}

describe('the rotation of the key [security]', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let db: mongo.Db;

  beforeAll(() => {
    db = database.db;
  });

  beforeEach(async () => {
    await collection(db, 'webhooks').deleteMany({});
  });

  async function insert(count: number): Promise<Webhook[]> {
    const store = createWebhookStore(db, createVault([OLD]));
    const all = Array.from({ length: count }, (_, n) => sampleWebhook(n));
    // All at once, some would wait for a connection longer than they may on a busy machine.
    for (let from = 0; from < count; from += 100) {
      await Promise.all(all.slice(from, from + 100).map((each) => store.insert(each)));
    }
    return all;
  }

  const listed = async (store: WebhookStore) =>
    (await Array.fromAsync(store.list(COMPANY, { skip: 0, limit: 2_000 }))).flat();

  it('seals 1,200 webhooks again, also after an interruption halfway', async () => {
    const all = await insert(1_200);
    await expect(resealWebhooks(db, endingAt(600), unexpected)).rejects.toThrow('interrupted');
    expect(await countByKey(db, 'webhooks')).toEqual({ new: 500, old: 700 });

    const rest = await resealWebhooks(db, rotated, unexpected);
    expect(rest).toEqual({ resealed: 700, remaining: 0 });
    expect(await countByKey(db, 'webhooks')).toEqual({ new: 1_200 });
    const again = await resealWebhooks(db, rotated, unexpected);
    expect(again).toEqual({ resealed: 0, remaining: 0 });

    const onlyNew = createWebhookStore(db, createVault([NEW]));
    expect(await listed(onlyNew)).toMatchObject(all);
  });

  it('does not overwrite a change that was made between its read and its write', async () => {
    const [first = sampleWebhook(0), second = sampleWebhook(1)] = await insert(2);
    const change = { secret: 'whsec_changed', updatedAtMs: 3_000 };
    const meddling = changingBeforeWrites(db, () =>
      createWebhookStore(db, createVault([OLD])).update(first, change),
    );
    const result = await resealWebhooks(meddling, rotated, unexpected);
    expect(result).toEqual({ resealed: 1, remaining: 1 });
    const rest = await resealWebhooks(db, rotated, unexpected);
    expect(rest).toEqual({ resealed: 1, remaining: 0 });
    const store = createWebhookStore(db, createVault([NEW]));
    expect(await listed(store)).toMatchObject([{ ...first, ...change }, second]);
  });

  it('does not restore a webhook that was deleted meanwhile', async () => {
    const [first = sampleWebhook(0)] = await insert(2);
    const meddling = changingBeforeWrites(db, () =>
      createWebhookStore(db, rotated).deleteOne(COMPANY, first.id),
    );
    const result = await resealWebhooks(meddling, rotated, unexpected);
    expect(result).toEqual({ resealed: 1, remaining: 0 });
    expect(await countByKey(db, 'webhooks')).toEqual({ new: 1 });
  });

  it('continues after a webhook that cannot be opened, and reports it', async () => {
    const [{ id: _id } = sampleWebhook(0)] = await insert(2);
    const $set = { 'sealed.secret': 'whsec_hush' };
    await collection(db, 'webhooks').updateOne({ _id }, { $set });
    const problems: string[] = [];
    const result = await resealWebhooks(db, rotated, ({ message }) => problems.push(message));
    expect(result).toEqual({ resealed: 1, remaining: 1 });
    expect(problems).toEqual([`secret of ${_id} is not a sealed value`]);
    expect(await countByKey(db, 'webhooks')).toEqual({ new: 1, old: 1 });
  });

  it('follows a URL that is changed through the store', async () => {
    const store = createWebhookStore(db, createVault([NEW]));
    const webhook = sampleWebhook(7);
    await store.insert(webhook);
    const change = { url: 'https://elsewhere.example/hook', updatedAtMs: 3_000 };
    await store.update(webhook, change);
    expect(await store.findOne(COMPANY, webhook.id)).toEqual({ ...webhook, ...change });
  });
});
