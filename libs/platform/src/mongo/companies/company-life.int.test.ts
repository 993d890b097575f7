import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../documents/collections.ts';
import { createCompanyLife, type CompanyLife } from './company-life.ts';

let database: ScratchDatabase;
let life: CompanyLife;

beforeAll(async () => {
  database = await openScratchDatabase();
  life = createCompanyLife(database.db);
});

afterAll(() => database.drop());

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

  it('may be removed once it has been suspended for the given time', async () => {
    await life.suspend('comp_2');
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
