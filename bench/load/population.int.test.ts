import { expect, it } from '@jest/globals';
import { createCompanyStore, hashOfKey } from '@posthorn/platform/mongo/companies/companies.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { createReadAppTargets } from '@posthorn/platform/mongo/webhooks/app-targets.ts';
import { createVault } from '@posthorn/platform/security/vault.ts';
import { duringTests } from '../../test/support/during-tests.ts';
import { scratchFolder } from '../../test/support/process/scratch-folder.ts';
import { randomKey } from '../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../test/support/stores/scratch-database.ts';
import { apiKeyOf, appIdOf, storePopulation } from './population.ts';

const POPULATION = { companies: 3, webhooks: 7, origins: 2 };
const vault = createVault([randomKey('k1')]);

const database = duringTests(openScratchDatabase, ({ drop }) => drop());

it('is what the API would have stored, and is stored once', async () => {
  const { db } = database;
  const { signal } = new AbortController();
  const stackDir = scratchFolder();
  const deps = { stackDir, db, vault, signal, log: () => undefined };
  await storePopulation(POPULATION, deps);
  // Webhook 4 belongs to company 4 % 3.
  const hash = hashOfKey(apiKeyOf(1));
  const key = (await createCompanyStore(db).findKeys(new Set([hash]))).get(hash);
  const app = (await createReadAppTargets(db, vault)(new Set([appIdOf(4)]), 2)).get(appIdOf(4));
  expect(app?.companyId).toBe(key?.companyId);
  const [webhook, ...others] = app?.webhooks ?? [];
  expect(webhook).toMatchObject({ kind: 'opened', url: 'http://127.1.0.1:9830/4' });
  expect(others).toEqual([]);

  await storePopulation(POPULATION, deps);
  expect(await collection(db, 'apps').countDocuments()).toBe(POPULATION.webhooks);
  await expect(storePopulation({ ...POPULATION, webhooks: 8 }, deps)).rejects.toThrow('another');
});
