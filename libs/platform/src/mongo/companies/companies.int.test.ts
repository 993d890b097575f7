import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ALL_SCOPES } from '@posthorn/domain/access.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import type { ApiKeyDocument } from '../documents.ts';
import {
  type CompanyLife,
  type CompanyStore,
  createCompanyLife,
  createCompanyStore,
} from './companies.ts';

function key(n: number, companyId = 'comp_a'): ApiKeyDocument {
  const texts = { name: `Key ${n}`, prefix: `ph_${n}`, hash: `hash-${n}` };
  return { _id: `key_${n}`, companyId, ...texts, createdAt: new Date(n) };
}

function company(n: number | string) {
  return { _id: `comp_${n}`, name: `C ${n}`, createdAt: new Date(1) };
}

describe('companies and their keys', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let companies: CompanyStore;

  beforeAll(async () => {
    companies = createCompanyStore(database.db);
    for (const n of ['a', 'b']) await companies.insertCompany(company(n));
    for (const n of [2, 1]) await companies.insertKey(key(n));
    await companies.insertKey(key(3, 'comp_b'));
  });

  const findKey = async (hash: string) =>
    (await companies.findKeys(new Set([hash]))).get(hash) ?? null;

  it('are listed oldest first', async () => {
    for (const n of [2, 1]) await companies.insertCompany(company(n));
    expect(await companies.listCompanies()).toEqual([1, 2, 'a', 'b'].map(company));
    expect(await companies.hasCompany('comp_1')).toBe(true);
    expect(await companies.hasCompany('comp_3')).toBe(false);
    await expect(companies.insertCompany(company(1))).rejects.toThrow('duplicate key');
  });

  it('are found by the hash of a key only', async () => {
    expect(await findKey('hash-1')).toEqual({
      keyId: 'key_1',
      companyId: 'comp_a',
      scopes: ALL_SCOPES,
      appId: null,
      expiresAtMs: null,
      isSuspended: false,
    });
    expect(await findKey('hash-3')).toMatchObject({ companyId: 'comp_b' });
    expect(await findKey('ph_1')).toBeNull();
    expect(await findKey('')).toBeNull();
    const both = await companies.findKeys(new Set(['hash-1', 'hash-3', 'ph_1']));
    expect([...both.keys()].sort()).toEqual(['hash-1', 'hash-3']);
    expect(both.get('hash-3')).toMatchObject({ companyId: 'comp_b' });
  });

  it('are found with their rights', async () => {
    const rights = { scopes: ['read' as const], appId: 'app_1', expiresAt: new Date(5) };
    await companies.insertKey({ ...key(9), ...rights });
    expect(await findKey('hash-9')).toMatchObject({
      scopes: ['read'],
      appId: 'app_1',
      expiresAtMs: 5,
    });
    expect(await companies.removeKey('key_9')).toBe(true);
  });

  it('are found with the state of their company, and not without it', async () => {
    await companies.insertCompany({ ...company('d'), suspendedAt: new Date(1) });
    await companies.insertKey(key(10, 'comp_d'));
    await companies.insertKey(key(11, 'comp_gone'));
    expect(await findKey('hash-10')).toMatchObject({ isSuspended: true });
    expect(await findKey('hash-11')).toBeNull();
  });

  it('know their latest use to the minute, and only what is a minute later is written', async () => {
    await companies.insertKey(key(8));
    const shown: (number | undefined)[] = [];
    const told: (number | undefined)[] = [];
    for (const atMs of [200_000, 100_000, 230_000, 259_999, 260_000, 400_000]) {
      const both = ['key_8', 'key_gone'] as const;
      const stored = await companies.noteUse(new Map(both.map((id) => [id, atMs])));
      expect(stored.has('key_gone')).toBe(false);
      told.push(stored.get('key_8'));
      const keys = await companies.listKeys(key(8).companyId);
      shown.push(keys.find(({ _id }) => _id === 'key_8')?.lastUsedAt?.getTime());
    }
    await companies.noteUse(new Map());
    expect(shown).toEqual([200_000, 200_000, 200_000, 200_000, 260_000, 400_000]);
    expect(told).toEqual(shown);
    expect(await companies.removeKey('key_8')).toBe(true);
  });

  it('are listed without hashes, and for their own company only', async () => {
    const shown = [1, 2].map((n) => ({ ...key(n), hash: undefined }));
    expect(await companies.listKeys('comp_a')).toEqual(shown);
    expect(JSON.stringify(await companies.listKeys('comp_a'))).not.toContain('hash');
    expect(await companies.listKeys('comp_c')).toEqual([]);
  });

  it('are found by when they were used last', async () => {
    await companies.noteUse(new Map([['key_1', 120_000]]));
    expect(await companies.usedSince(['comp_a', 'comp_b'], 60_000)).toEqual(['hash-1']);
    expect(await companies.usedSince(['comp_a', 'comp_b'], 180_000)).toEqual([]);
    expect(await companies.usedSince(['comp_b'], 60_000)).toEqual([]);
  });

  it('cannot have two keys with the same hash', async () => {
    await expect(companies.insertKey({ ...key(4), hash: 'hash-1' })).rejects.toThrow('duplicate');
  });

  it('lose a key once, which then authenticates nobody', async () => {
    expect(await companies.companyOfKey('key_2')).toBe('comp_a');
    expect(await companies.removeKey('key_2')).toBe(true);
    expect(await companies.removeKey('key_2')).toBe(false);
    expect(await companies.companyOfKey('key_2')).toBeNull();
    expect(await findKey('hash-2')).toBeNull();
    expect(await findKey('hash-1')).toMatchObject({ companyId: 'comp_a' });
  });
});

describe('company life', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let life: CompanyLife;

  beforeAll(() => {
    life = createCompanyLife(database.db, Date.now);
  });

  beforeEach(async () => {
    const companies = collection(database.db, 'companies');
    await companies.deleteMany({});
    for (const n of [1, 2]) {
      await companies.insertOne({ _id: `comp_${n}`, name: 'C', createdAt: new Date(n) });
      await collection(database.db, 'apiKeys').deleteMany({});
    }
  });

  const suspended = async (): Promise<string[]> => [...(await life.listSuspended()).keys()];

  async function insertKey(n: number, companyId: string): Promise<void> {
    const texts = { name: 'Key', prefix: 'p', hash: `hash-${n}` };
    const key = { _id: `key_${n}`, companyId, ...texts, createdAt: new Date(n) };
    await collection(database.db, 'apiKeys').insertOne(key);
  }

  describe('a company', () => {
    it('is active, suspended and resumed', async () => {
      expect(await life.statusOf('comp_1')).toBe('active');
      await life.suspend('comp_1');
      expect([await life.statusOf('comp_1'), await suspended()]).toEqual(['suspended', ['comp_1']]);
      await life.resume('comp_1');
      expect([await life.statusOf('comp_1'), await suspended()]).toEqual(['active', []]);
      expect([await life.statusOf('comp_2'), await life.statusOf('comp_3')]).toEqual([
        ...['active', null],
      ]);
    });

    it('stays suspended since the first time, by the clock of the database', async () => {
      await life.suspend('comp_1');
      const since = await life.listSuspended();
      await life.suspend('comp_1');
      expect(await life.listSuspended()).toEqual(since);
      expect(Math.abs(Date.now() - (since.get('comp_1') ?? 0))).toBeLessThan(60_000);
    });

    it('loses its keys and cannot be resumed when its removal has begun', async () => {
      await insertKey(1, 'comp_1');
      await insertKey(2, 'comp_2');
      await life.beginRemoval('comp_1');
      await life.resume('comp_1');
      expect([await life.statusOf('comp_1'), await suspended()]).toEqual(['removing', ['comp_1']]);
      const keys = await collection(database.db, 'apiKeys').find({}).toArray();
      expect(keys.map(({ _id }) => _id)).toEqual(['key_2']);
    });

    it('may be removed the given time after its removal has begun, however long it was suspended', async () => {
      await life.suspend('comp_2');
      const suspendedAt = new Date(0);
      await collection(database.db, 'companies').updateOne(
        { _id: 'comp_1' },
        { $set: { suspendedAt } },
      );
      await life.beginRemoval('comp_1');
      expect(await life.listRemovable(60_000)).toEqual([]);
      expect(await life.listRemovable(0)).toEqual(['comp_1']);
      await life.endRemoval('comp_1');
      await life.endRemoval('comp_2');
      expect([await life.statusOf('comp_1'), await life.statusOf('comp_2')]).toEqual([
        ...[null, 'suspended'],
      ]);
    });
  });
});
