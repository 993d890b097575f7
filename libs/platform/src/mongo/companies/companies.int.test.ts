import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { createCompanyStore, type CompanyStore } from './companies.ts';
import type { ApiKeyDocument } from '../documents.ts';

function key(n: number, companyId = 'comp_a'): ApiKeyDocument {
  const texts = { name: `Key ${n}`, prefix: `ph_${n}`, hash: `hash-${n}` };
  return { _id: `key_${n}`, companyId, ...texts, createdAt: new Date(n) };
}

describe('companies and their keys', () => {
  let database: ScratchDatabase;
  let companies: CompanyStore;

  beforeAll(async () => {
    database = await openScratchDatabase();
    companies = createCompanyStore(database.db);
    for (const n of [2, 1]) await companies.insertKey(key(n));
    await companies.insertKey(key(3, 'comp_b'));
  });

  afterAll(() => database.drop());

  it('are listed oldest first', async () => {
    const company = (n: number) => ({ _id: `comp_${n}`, name: `C ${n}`, createdAt: new Date(n) });
    for (const n of [2, 1]) await companies.insertCompany(company(n));
    expect(await companies.listCompanies()).toEqual([company(1), company(2)]);
    expect(await companies.hasCompany('comp_1')).toBe(true);
    expect(await companies.hasCompany('comp_3')).toBe(false);
    await expect(companies.insertCompany(company(1))).rejects.toThrow('duplicate key');
  });

  it('are found by the hash of a key only', async () => {
    expect(await companies.companyOfKey('hash-1')).toBe('comp_a');
    expect(await companies.companyOfKey('hash-3')).toBe('comp_b');
    expect(await companies.companyOfKey('ph_1')).toBeNull();
    expect(await companies.companyOfKey('')).toBeNull();
  });

  it('are listed without hashes, and for their own company only', async () => {
    const shown = [1, 2].map((n) => ({ ...key(n), hash: undefined }));
    expect(await companies.listKeys('comp_a')).toEqual(shown);
    expect(JSON.stringify(await companies.listKeys('comp_a'))).not.toContain('hash');
    expect(await companies.listKeys('comp_c')).toEqual([]);
  });

  it('cannot have two keys with the same hash', async () => {
    await expect(companies.insertKey({ ...key(4), hash: 'hash-1' })).rejects.toThrow('duplicate');
  });

  it('lose a key once, which then authenticates nobody', async () => {
    expect(await companies.removeKey('key_2')).toBe(true);
    expect(await companies.removeKey('key_2')).toBe(false);
    expect(await companies.companyOfKey('hash-2')).toBeNull();
    expect(await companies.companyOfKey('hash-1')).toBe('comp_a');
  });
});
