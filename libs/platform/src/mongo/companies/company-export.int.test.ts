import { beforeAll, describe, expect, it } from '@jest/globals';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { noAttempts, packCounts } from '@posthorn/domain/stats.ts';
import type { SigningKey } from '@posthorn/domain/request/signature.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createVault, type Vault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { sealSigningKey } from './signing-keys.ts';
import { createWebhookStore } from '../webhooks/webhooks.ts';
import { exportCompany, type ExportedThing } from './company-export.ts';

const AT = new Date(5);
const TIMES = { createdAt: AT, updatedAt: AT };
const WEBHOOK = sampleWebhook(1, { companyId: 'comp_a' });
const SIGNING_KEY: SigningKey = {
  id: 'sk_1',
  companyId: 'comp_a',
  number: 1,
  privateKey: 'secret private key',
  publicKey: 'public',
  createdAtMs: 5,
  previousUntilMs: null,
};
const vault = createVault([randomKey('k1')]);

const database = duringTests(openScratchDatabase, ({ drop }) => drop());

beforeAll(async () => {
  const { db } = database;
  await createWebhookStore(db, vault).insert(WEBHOOK);
  await collection(db, 'signingKeys').insertOne(sealSigningKey(vault, SIGNING_KEY));
  for (const companyId of ['comp_a', 'comp_b']) await plant(companyId);
});

async function plant(companyId: string): Promise<void> {
  const { db } = database;
  await collection(db, 'companies').insertOne({ _id: companyId, name: 'C', createdAt: AT });
  const owned = { companyId, name: 'N', description: '', environment: 'production' as const };
  await collection(db, 'projects').insertOne({ _id: `proj_${companyId}`, ...owned, ...TIMES });
  const hash = `hash of ${companyId}`;
  const key = { _id: `key_${companyId}`, companyId, name: 'K', prefix: 'phk_1', createdAt: AT };
  await collection(db, 'apiKeys').insertOne({ ...key, hash });
  const messageId = `msg_${companyId}`;
  await collection(db, 'messages').insertOne({
    _id: messageId,
    companyId,
    appId: null,
    payload: '{"n":1}',
    targets: [WEBHOOK.id, 'wh_2'],
    publisherId: 'gw_1',
    requestId: 'request-1',
    createdAt: AT,
    idempotency: { key: 'order-17', bodyHash: 'h', answer: 'sealed' },
  });
  await collection(db, 'deliveries').insertOne({
    _id: deliveryIdOf(messageId, WEBHOOK.id),
    messageId,
    webhookId: WEBHOOK.id,
    companyId,
    appId: null,
    status: 'delivered',
    reason: null,
    attemptCount: 0,
    attempts: [],
    nextAttemptAt: null,
    ...TIMES,
  });
}

async function exported(companyId: string, given: Vault | null): Promise<ExportedThing[]> {
  return Array.fromAsync(exportCompany(database.db, companyId, given));
}

describe('the export of a company', () => {
  it('has everything of it, deliveries after their message, and nothing of another one', async () => {
    const things = await exported('comp_a', null);
    expect(things.map(({ type, id }) => [type, id])).toEqual([
      ['company', 'comp_a'],
      ['project', 'proj_comp_a'],
      ['webhook', WEBHOOK.id],
      ['signingKey', 'sk_1'],
      ['apiKey', 'key_comp_a'],
      ['message', 'msg_comp_a'],
      ['delivery', deliveryIdOf('msg_comp_a', WEBHOOK.id)],
    ]);
    expect(things[5]).toEqual({
      type: 'message',
      id: 'msg_comp_a',
      appId: null,
      payload: '{"n":1}',
      targets: [WEBHOOK.id, 'wh_2'],
      requestId: 'request-1',
      createdAt: AT,
      idempotencyKey: 'order-17',
    });
    expect(JSON.stringify(things)).not.toContain('comp_b');
  });

  it('has no hash and no secret, and the secrets of webhooks with a vault', async () => {
    const plain = JSON.stringify(await exported('comp_a', null));
    expect(plain).not.toMatch(/hash of|sealed|whsec_|private/);
    const things = await exported('comp_a', vault);
    const { secret, authMethod, customHeaders, url } = WEBHOOK;
    const { privateKey } = SIGNING_KEY;
    expect(things).toContainEqual(expect.objectContaining({ type: 'signingKey', privateKey }));
    expect(things.find(({ type }) => type === 'webhook')).toMatchObject({
      secret,
      authMethod,
      customHeaders,
      url,
      createdAt: new Date(WEBHOOK.createdAtMs),
    });
  });

  it('fails when the secret of a webhook does not open', async () => {
    const other = createVault([randomKey('k2')]);
    await expect(exported('comp_a', other)).rejects.toThrow('k1');
  });

  it('has nothing of an unknown company', async () => {
    expect(await exported('comp_x', null)).toEqual([]);
  });

  it('shows all minutes of the statistics in the same way, and not how they were added up', async () => {
    const { db } = database;
    await collection(db, 'companies').insertOne({ _id: 'comp_s', name: 'C', createdAt: AT });
    const hour = {
      companyId: 'comp_s',
      kind: 'webhook',
      ownerId: 'wh_1',
      at: new Date(0),
    } as const;
    const counts = { ...noAttempts(), outcomes: { success: 1 } };
    const packed = { 7: JSON.stringify([[3, packCounts(counts)]]) };
    const minutes = { 5: counts };
    const stored = { _id: 'wh_1/1970-01-01T00', ...hour, total: counts, minutes, packed, step: 7 };
    await collection(db, 'stats').insertOne(stored);
    const [, exported] = await Array.fromAsync(exportCompany(db, 'comp_s', null));
    expect(exported).toMatchObject({ type: 'stats', minutes: { 3: counts, 5: counts } });
    expect(exported).not.toHaveProperty('packed');
    expect(exported).not.toHaveProperty('step');
  });
});
