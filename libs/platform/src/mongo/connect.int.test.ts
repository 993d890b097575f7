import { expect, test } from '@jest/globals';
import mongoose from 'mongoose';
import { Registry } from 'prom-client';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { watchClient } from './connect.ts';

test('An operation of the real driver that finds no server counts as an error', async () => {
  const registry = new Registry();
  const { MONGODB_URL } = createNamespace();
  const client = new mongoose.mongo.MongoClient(MONGODB_URL, { serverSelectionTimeoutMS: 2_000 });
  await client.connect();
  try {
    watchClient(registry, client, 20);
    // No server has this tag.
    const readPreference = new mongoose.mongo.ReadPreference('secondary', [{ nobody: 'has' }]);
    const find = client.db().collection('none').findOne({}, { readPreference });
    await expect(find).rejects.toThrow();
    const errors = 'posthorn_store_errors_total{store="mongodb",operation="selectServer"} 1';
    expect(await registry.metrics()).toContain(errors);
  } finally {
    await client.close();
  }
});
