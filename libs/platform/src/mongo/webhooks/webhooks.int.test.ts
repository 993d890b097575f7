import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { isOrdered, wantsEvent, type AuthMethod, type Webhook } from '@posthorn/domain/webhook.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { randomKey, sampleWebhook } from '../../../../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createVault, SealedValueError } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { createReadAppTargets, type ReadAppTargets } from './app-targets.ts';
import { createWebhookStore, type WebhookStore } from './webhooks.ts';

const COMPANY = 'comp_a';

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let store: WebhookStore;
let readApps: ReadAppTargets;

beforeAll(async () => {
  const vault = createVault([randomKey('k1')]);
  store = createWebhookStore(database.db, vault);
  readApps = createReadAppTargets(database.db, vault);
  const common = {
    name: 'a',
    description: '',
    projectId: 'proj_1',
    environment: 'production' as const,
  };
  const times = { createdAt: new Date(1), updatedAt: new Date(1) };
  const apps = [
    { ...common, ...times, _id: 'app_1', companyId: COMPANY },
    {
      ...common,
      ...times,
      _id: 'app_2',
      companyId: 'comp_b',
      storePayloads: 'until-delivered' as const,
    },
  ];
  await collection(database.db, 'apps').insertMany(apps);
});

beforeEach(async () => {
  await documents().deleteMany({});
});

const opened = (webhook: Webhook) => ({ kind: 'opened', ...webhook });
const targetsOfApp = async () => (await readApps(new Set(['app_1']), 9)).get('app_1')?.webhooks;
const documents = () => collection(database.db, 'webhooks');
const raw = (_id: string) => documents().findOne({ _id });

describe('stored webhooks', () => {
  const methods: AuthMethod[] = [
    sampleWebhook(1).authMethod,
    { method: 'basic', username: 'hush-user', password: 'hush-password' },
    { method: 'api_key', apiKey: 'hush-key', apiKeyHeader: 'X-Their-Key' },
  ];

  it.each(methods)(
    'are read as they were stored, and the document shows no secret: %j',
    async (authMethod) => {
      const stored = sampleWebhook(1, { authMethod });
      await store.insert(stored);
      expect(await store.findOne(COMPANY, stored.id)).toEqual(stored);
      expect(await targetsOfApp()).toEqual([opened(stored)]);
      expect(await store.findMany([stored.id])).toEqual([opened(stored)]);
      const document = await raw(stored.id);
      expect(document?.keyId).toBe('k1');
      expect(JSON.stringify(document)).not.toMatch(/hush|whsec_|X-Their-Key|X-Tenant/);
    },
  );

  it('are read for several apps at once, the oldest of each', async () => {
    const [first, second, third] = [1, 2, 3].map((n) => sampleWebhook(n));
    const other = { ...sampleWebhook(4), appId: 'app_2', companyId: 'comp_b' };
    // Of another company than the app, which no request can make.
    const foreign = { ...sampleWebhook(5), appId: 'app_2' };
    for (const each of [third, second, first, other, foreign]) if (each) await store.insert(each);
    const found = await readApps(new Set(['app_1', 'app_2', 'app_gone']), 2);
    expect([...found.keys()].sort()).toEqual(['app_1', 'app_2']);
    const ids = found.get('app_1')?.webhooks.map(({ id }) => id);
    expect(ids).toEqual([first?.id, second?.id]);
    expect(found.get('app_2')).toMatchObject({
      companyId: 'comp_b',
      notStored: { erasesPayload: true },
      webhooks: [{ id: other.id }],
    });
    expect(found.get('app_2')?.webhooks).toHaveLength(1);
  });

  it('are read without TLS settings, metadata and filter by those who do not need them', async () => {
    const tls = { client: { certificate: 'chain', key: 'hush-key' }, ca: null };
    const filter = '{"tags":"eu"}';
    const stored = sampleWebhook(1, { tls, uid: 'a', metadata: '{"plan":"gold"}', filter });
    await store.insert(stored);
    const without = opened({ ...stored, tls: null, metadata: null });
    expect(await store.findTarget(COMPANY, stored.id)).toEqual(without);
    expect(await targetsOfApp()).toEqual([without]);
    const query = { appId: 'app_1', eventType: 'order.paid', limit: 9 };
    const targets = await store.findTargets(COMPANY, query);
    expect(targets.oldest).toEqual(without);
    expect(targets.filters).toEqual(new Map([[stored.id, { tags: 'eu' }]]));
    const [part] = await Array.fromAsync(store.list(COMPANY, { skip: 0, limit: 9 }));
    expect(part).toEqual([opened({ ...stored, tls: null })]);
    expect(await store.findOne(COMPANY, stored.id)).toEqual(stored);
    const sent = { ...stored, metadata: null, filter: null };
    expect(await store.findMany([stored.id])).toEqual([opened(sent)]);
  });

  it('are sealed again by every change', async () => {
    const stored = sampleWebhook(1, { previousSecret: null });
    await store.insert(stored);
    const before = await raw(stored.id);
    const changed = await store.update(stored, { secret: 'whsec_hush-next', updatedAtMs: 3_000 });
    expect(changed).toEqual({ ...stored, secret: 'whsec_hush-next', updatedAtMs: 3_000 });
    const after = await raw(stored.id);
    expect(after?.sealed.authMethod).not.toBe(before?.sealed.authMethod);
    expect(after?.sealed).not.toHaveProperty('previousSecret');
    expect(JSON.stringify(after)).not.toMatch(/hush|whsec_/);
  });

  it('keep by a change that they have an old backlog, and lose what was reported of failures', async () => {
    const tls = { client: { certificate: 'chain', key: 'hush-key' }, ca: null };
    const stored = sampleWebhook(1, { tls });
    await store.insert(stored);
    const deferredAt = new Date(2_000);
    const failing = { since: new Date(1_000), disableAt: null };
    await documents().updateOne({ _id: stored.id }, { $set: { deferredAt, failing } });
    await store.update(stored, { name: 'Changed', tls: null, updatedAtMs: 3_000 });
    const changed = await raw(stored.id);
    expect(changed).toMatchObject({ name: 'Changed', deferredAt });
    expect(changed).not.toHaveProperty('failing');
    expect(changed?.sealed).not.toHaveProperty('tls');
  });

  it('are not changed when they were changed since they were read', async () => {
    const stored = sampleWebhook(1);
    await store.insert(stored);
    await store.update(stored, { name: 'First', updatedAtMs: 3_000 });
    expect(await store.update(stored, { name: 'Second', updatedAtMs: 3_001 })).toBeNull();
    expect((await store.findOne(COMPANY, stored.id))?.name).toBe('First');
  });

  it('are changed once by many changes at the same time', async () => {
    const stored = sampleWebhook(1);
    await store.insert(stored);
    const rivals = Array.from({ length: 9 }, (_, n) =>
      store.update(stored, { name: `Rival ${n}`, updatedAtMs: 3_000 + n }),
    );
    const changed = (await Promise.all(rivals)).filter((answer) => answer !== null);
    expect(changed).toEqual([await store.findOne(COMPANY, stored.id)]);
  });

  it('are not restored by a change when they were deleted meanwhile', async () => {
    const stored = sampleWebhook(1);
    await store.insert(stored);
    expect(await store.deleteOne('comp_b', stored.id)).toBe(false);
    expect(await store.deleteOne(COMPANY, stored.id)).toBe(true);
    expect(await store.update(stored, { name: 'Late', updatedAtMs: 3_000 })).toBeNull();
    expect(await store.findOne(COMPANY, stored.id)).toBeNull();
  });
});

describe('a sealed value that was tampered with', () => {
  const [mine, other] = [sampleWebhook(1), sampleWebhook(2)];

  beforeEach(async () => {
    await Promise.all([store.insert(mine), store.insert(other)]);
  });

  async function expectRefusal(reason: RegExp): Promise<void> {
    await expect(store.findOne(COMPANY, mine.id)).rejects.toThrow(SealedValueError);
    await expect(store.findOne(COMPANY, mine.id)).rejects.toThrow(reason);
    const { id, projectId, appId, disabled, cancelBeforeMs, eventTypes } = mine;
    const { maxAttempts, held, ordering } = mine;
    const problem: unknown = expect.any(SealedValueError);
    const stops = { disabled, cancelBeforeMs, maxAttempts, held, ordering };
    const state = { companyId: COMPANY, projectId, appId, eventTypes, filter: null, ...stops };
    const unopened = { kind: 'unopened', id, ...state, problem };
    const both = [unopened, opened(other)];
    expect(await store.findMany([id, other.id])).toEqual(expect.arrayContaining(both));
    expect(await targetsOfApp()).toEqual(both);
    expect((await Array.fromAsync(store.list(COMPANY, { skip: 0, limit: 9 }))).flat()).toEqual(
      both,
    );
    expect(await store.findTarget(COMPANY, id)).toEqual(both[0]);
  }

  const moves = [
    ['authMethod', 'secret'],
    ['secret', 'previousSecret'],
    ['customHeaders', 'authMethod'],
  ] as const;

  it.each(moves)('a value that was moved from %s to %s does not open', async (from, to) => {
    const value = (await raw(mine.id))?.sealed[from];
    await documents().updateOne({ _id: mine.id }, { $set: { [`sealed.${to}`]: value } });
    await expectRefusal(/^(secret|previousSecret|authMethod) of .* was changed or moved$/);
  });

  it.each(['secret', 'previousSecret', 'authMethod', 'customHeaders'] as const)(
    "by another webhook's %s in its place does not open, and the other webhook still does",
    async (field) => {
      const value = (await raw(other.id))?.sealed[field];
      await documents().updateOne({ _id: mine.id }, { $set: { [`sealed.${field}`]: value } });
      await expectRefusal(new RegExp(`^${field} of ${mine.id} is sealed with key k1, and`));
    },
  );

  it('a value with another company as its owner does not open', async () => {
    await documents().updateOne({ _id: mine.id }, { $set: { companyId: 'comp_b' } });
    await expect(store.findOne('comp_b', mine.id)).rejects.toThrow('changed or moved');
  });

  it.each([
    ['plain text in its place', { 'sealed.secret': 'whsec_hush' }],
    ['a number in its place', { 'sealed.secret': 7 }],
    ['an empty text in its place', { 'sealed.previousSecret': '' }],
    ['nothing sealed at all', { sealed: null, secret: 'whsec_hush' }],
  ])('by %s does not open', async (_what, $set) => {
    await documents().updateOne({ _id: mine.id }, { $set } as object);
    await expectRefusal(/^(secret|previousSecret) of wh_|^webhook \S+ has no sealed values$/);
  });
});

describe('the targets of a message', () => {
  const types = [[], ['order.paid'], ['order.sent', 'order.*'], ['order.item.*'], []];
  const ofApp = types.map((eventTypes, n) =>
    sampleWebhook(n, { eventTypes, disabled: n === 2, ordering: n === 1 ? 'block' : 'none' }),
  );

  beforeEach(async () => {
    for (const webhook of ofApp) await store.insert(webhook);
    await store.insert(sampleWebhook(5, { eventTypes: [], companyId: 'comp_b' }));
    await store.insert(sampleWebhook(6, { eventTypes: [], appId: 'app_2' }));
  });

  it.each([null, 'order', 'order.paid', 'order.sent', 'order.item.added', 'shop'])(
    'are the webhooks of the app that want the event type %j, oldest first',
    async (eventType) => {
      const wanted = ofApp.filter((each) => wantsEvent(each, eventType));
      expect(await store.findTargets(COMPANY, { appId: 'app_1', eventType, limit: 9 })).toEqual({
        targets: wanted.map(({ id }) => id),
        disabledTargets: new Set(wanted.flatMap(({ id, disabled }) => (disabled ? [id] : []))),
        orderedTargets: new Set(wanted.filter(isOrdered).map(({ id }) => id)),
        oldest: wanted[0] && opened(wanted[0]),
        filters: null,
      });
    },
  );

  it('are as many as asked for, and none in an app without webhooks', async () => {
    const query = { appId: 'app_1', eventType: 'order.paid', limit: 2 };
    expect((await store.findTargets(COMPANY, query)).targets).toHaveLength(2);
    expect(await store.findTargets(COMPANY, { ...query, appId: 'app_none' })).toEqual({
      targets: [],
      disabledTargets: new Set(),
      orderedTargets: new Set(),
      oldest: null,
      filters: null,
    });
  });

  it('are counted by app, and global ones by project', async () => {
    const global = { appId: null, environmentId: 'live' };
    await store.insert(sampleWebhook(7, global));
    await store.insert(sampleWebhook(8, { ...global, projectId: 'proj_2' }));
    const countOf = (appId: string | null, limit = 9) =>
      store.countOf(COMPANY, { appId, projectId: 'proj_1' }, limit);
    expect([await countOf('app_1'), await countOf('app_1', 3)]).toEqual([5, 3]);
    expect([await countOf('app_2'), await countOf(null)]).toEqual([1, 1]);
  });
});

it('a long list comes in parts of 5, in order', async () => {
  const all = Array.from({ length: 120 }, (_, n) => sampleWebhook(n));
  for (const each of all) await store.insert(each);
  const parts = await Array.fromAsync(store.list(COMPANY, { skip: 5, limit: 110 }));
  expect(parts.map(({ length }) => length)).toEqual(Array(22).fill(5));
  expect(parts.flat()).toEqual(all.slice(5, 115).map(opened));
});
