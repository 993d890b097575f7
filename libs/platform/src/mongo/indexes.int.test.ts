import { describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { openFreshDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createIndexes, UNIQUE_INDEXES } from './create-indexes.ts';
import {
  applyIndexes,
  defaultName,
  findMissing,
  type IndexSpec,
  readAppliedIndexes,
  writeAppliedIndexes,
} from './indexes.ts';

const WAIT_MS = 60_000;
const RETENTION = { days: 30, auditDays: 400 };

describe('applied indexes', () => {
  const database = duringTests(openFreshDatabase, ({ drop }) => drop());

  const namesOf = async (collection: string): Promise<string[]> =>
    (await database.db.collection(collection).indexes()).map(({ name }) => name ?? '').sort();

  it('are known with their version, and none is missing', async () => {
    expect(await readAppliedIndexes(database.db)).toMatchObject({
      version: expect.stringMatching(/^[0-9a-f]{12}$/),
      pending: [],
    });
    expect(await findMissing(database.db, UNIQUE_INDEXES)).toEqual([]);
  });

  it('may be asked for twice at once', async () => {
    await database.db.collection('webhooks').dropIndex('appId_1__id_1');
    const both = [createIndexes(database.db, RETENTION), createIndexes(database.db, RETENTION)];
    expect(await Promise.all(both)).toEqual([
      { building: [], dropped: [] },
      { building: [], dropped: [] },
    ]);
    expect(await namesOf('webhooks')).toContain('appId_1__id_1');
    const lease = await database.db.collection('leases').findOne({ holder: { $exists: true } });
    expect(lease).toBeNull();
  });

  it('are not waited for longer than asked; MongoDB goes on, and the next call sees the end', async () => {
    const documents = Array.from({ length: 20_000 }, (_, n) => ({ a: n }));
    await database.db.collection<{ a: number }>('large').insertMany(documents);
    const specs: IndexSpec[] = [{ collection: 'large', key: { a: 1 } }];
    const first = await applyIndexes(database.db, specs, { waitMs: 0 });
    expect(first).toEqual({ building: ['large.a_1'], dropped: [] });
    expect((await readAppliedIndexes(database.db))?.pending).toEqual(['large.a_1']);
    const second = await applyIndexes(database.db, specs, { waitMs: WAIT_MS });
    expect(second.building).toEqual([]);
    expect((await readAppliedIndexes(database.db))?.pending).toEqual([]);
    expect(await namesOf('large')).toEqual(['_id_', 'a_1']);
  });

  it('of other options replace the old ones, which stay until the new ones are ready', async () => {
    const old: IndexSpec = { collection: 'changed', key: { a: 1 } };
    const unneeded: IndexSpec = { collection: 'changed', key: { b: 1 } };
    await applyIndexes(database.db, [old, unneeded], { waitMs: WAIT_MS });
    const documents = Array.from({ length: 20_000 }, (_, n) => ({ a: n, b: n }));
    await database.db.collection<{ a: number; b: number }>('changed').insertMany(documents);
    const sparse: IndexSpec = { ...old, options: { sparse: true } };
    const options = { retired: [unneeded] };
    await applyIndexes(database.db, [sparse], { ...options, waitMs: 0 });
    expect(await namesOf('changed')).toEqual(expect.arrayContaining(['a_1', 'b_1']));
    const done = await applyIndexes(database.db, [sparse], { ...options, waitMs: WAIT_MS });
    expect(done.dropped.sort()).toEqual(['changed.a_1', 'changed.b_1']);
    expect(await namesOf('changed')).toEqual(['_id_', expect.stringMatching(/^a_1_/)]);
    expect(
      (await applyIndexes(database.db, [sparse], { ...options, waitMs: WAIT_MS })).dropped,
    ).toEqual([]);
  });

  it('are missing while they do not exist, and while nobody knows that they are ready', async () => {
    const [spec] = UNIQUE_INDEXES;
    if (!spec) throw new Error('There are unique indexes.');
    const place = `${spec.collection}.${defaultName(spec.key)}`;
    await writeAppliedIndexes(database.db, { version: 'v', pending: [place] });
    expect(await findMissing(database.db, UNIQUE_INDEXES)).toEqual([place]);
    await database.db.collection(spec.collection).dropIndex(defaultName(spec.key));
    await writeAppliedIndexes(database.db, { version: 'v', pending: [] });
    expect(await findMissing(database.db, UNIQUE_INDEXES)).toEqual([place]);
    await createIndexes(database.db, RETENTION);
    await eventually('none', async () => {
      return (await findMissing(database.db, UNIQUE_INDEXES)).length === 0;
    });
  });
});
