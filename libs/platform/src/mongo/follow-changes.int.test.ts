import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { startStoreProxy, type StoreProxy } from '../../../../test/support/process/store-proxy.ts';
import { openScratchDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createLogger } from '../service/logger.ts';
import { collection } from './collections.ts';
import { connectMongo, type MongoConnection } from './connect.ts';
import type { ApiKeyDocument } from './documents.ts';
import { type Change, type FollowedChanges, followChanges } from './follow-changes.ts';

const keyOf = (_id: string): ApiKeyDocument => {
  const texts = { name: 'A key', prefix: 'phk_a', hash: `hash-of-${_id}` };
  return { _id, companyId: 'comp_a', ...texts, createdAt: new Date(1) };
};

describe('changes', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let proxy: StoreProxy;
  let mongo: MongoConnection;
  let followed: FollowedChanges;
  let changes: Change[];
  let missed = 0;
  const stop = new AbortController();
  const { MONGODB_URL = '' } = process.env;

  beforeAll(async () => {
    const url = new URL(MONGODB_URL);
    url.pathname = `/${database.db.databaseName}`;
    proxy = await startStoreProxy(String(url));
    mongo = await connectMongo(proxy.url, 'posthorn-test');
    const context = {
      registry: new Registry(),
      logger: createLogger('test', 'silent'),
      lifecycle: { stopping: stop.signal },
    };
    followed = followChanges(context, mongo.connection, ['apiKeys', 'webhooks']);
    changes = [];
    followed.listen(
      (change) => changes.push(change),
      () => (missed += 1),
    );
    await eventually('all changes are known', () => followed.isCurrent());
  });

  afterAll(async () => {
    stop.abort();
    await mongo.close();
    await proxy.close();
  });

  it('are reported, but for those of what is cached nowhere', async () => {
    const apiKeys = collection(database.db, 'apiKeys');
    await apiKeys.insertOne(keyOf('key_1'));
    await apiKeys.updateOne({ _id: 'key_1' }, { $set: { lastUsedAt: new Date(2) } });
    await apiKeys.updateOne({ _id: 'key_1' }, { $set: { expiresAt: new Date(3) } });
    await apiKeys.updateOne({ _id: 'key_1' }, { $unset: { expiresAt: '' } });
    await apiKeys.deleteOne({ _id: 'key_1' });
    await eventually('four changes', () => changes.length >= 4);
    const of = { collection: 'apiKeys', id: 'key_1', appId: null, companyId: null };
    const change = { ...of, isRemoved: false };
    const update = { ...change, fields: ['expiresAt'] };
    const removal = { ...of, isRemoved: true, fields: null };
    const insertion = { ...change, companyId: 'comp_a', fields: null };
    expect(changes).toEqual([insertion, update, update, removal]);
  });

  it('are not known while the connection is frozen, and may have been missed afterwards', async () => {
    missed = 0;
    proxy.freeze();
    await eventually('not all changes are known', () => !followed.isCurrent());
    proxy.cut();
    proxy.thaw();
    await eventually('all changes are known', () => followed.isCurrent());
    expect(missed).toBeGreaterThan(0);
    changes = [];
    await collection(database.db, 'apiKeys').insertOne(keyOf('key_2'));
    await eventually('the change', () => changes.some(({ id }) => id === 'key_2'));
  });
});
