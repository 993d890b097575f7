import { beforeEach, describe, expect, it } from '@jest/globals';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { createUids, type OwnUid, type Uids } from './uids.ts';

const companyId = 'comp_a';

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let uids: Uids;
let isFollowed: boolean;

beforeEach(async () => {
  const { db } = database;
  for (const name of ['projects', 'apps', 'webhooks'] as const) {
    await collection(db, name).deleteMany({});
  }
  isFollowed = true;
  uids = createUids({ db, cacheBytes: 10_000, areChangesFollowed: () => isFollowed });
});

/** Stores the few fields that count. */
function insert(name: 'projects' | 'apps' | 'webhooks', document: object): Promise<void> {
  return documentsOf(database.db, name, companyId).insert(document as never);
}

const app = (uid: string, companyOfIt = companyId): OwnUid => ({
  companyId: companyOfIt,
  kind: 'app',
  uid,
});
const taken = { code: 'uid_taken' };

it('many uids are looked up with one read, and those that are known with none', async () => {
  const of = { companyId, kind: 'app' } as const;
  await insert('apps', { _id: 'app_1', projectId: 'proj_1', uid: 'a' });
  await insert('apps', { _id: 'app_2', projectId: 'proj_1', uid: 'b' });
  const wanted = new Set(['a', 'b', 'none']);
  const found = new Map([
    ['a', 'app_1'],
    ['b', 'app_2'],
  ]);
  expect(await uids.idsOf(of, wanted)).toEqual(found);
  await collection(database.db, 'apps').deleteMany({});
  expect(await uids.idsOf(of, wanted)).toEqual(found);
  expect(uids.cache.counts()).toEqual({ hit: 2, miss: 4 });
  uids.cache.forget('app_1');
  expect(await uids.idsOf(of, wanted)).toEqual(new Map([['b', 'app_2']]));
});

describe('a uid', () => {
  beforeEach(async () => {
    await insert('projects', { _id: 'proj_1', uid: 'a' });
    await insert('apps', { _id: 'app_1', projectId: 'proj_1', uid: 'a' });
  });

  it('is of one app of the company, and others may have none', async () => {
    const write = () => insert('apps', { _id: 'app_2', projectId: 'proj_1', uid: 'a' });
    await expect(uids.claim(app('a'), write)).rejects.toMatchObject(taken);
    const theirs = { _id: 'app_3', projectId: 'proj_1', uid: 'a' };
    await documentsOf(database.db, 'apps', 'comp_b').insert(theirs as never);
    await insert('apps', { _id: 'app_4', projectId: 'proj_1' });
    await insert('apps', { _id: 'app_5', projectId: 'proj_1' });
    for (const _id of ['wh_1', 'wh_2']) await insert('webhooks', { _id, uid: null });
    expect(await uids.idOf(app('a', 'comp_b'))).toBe('app_3');
  });

  it('that two take at once is given to one of them', async () => {
    const ids = Array.from({ length: 20 }, (_, n) => `app_${n + 2}`);
    const results = await Promise.allSettled(
      ids.map((_id) =>
        uids.claim(app('b'), () => insert('apps', { _id, projectId: 'proj_1', uid: 'b' })),
      ),
    );
    const refused = results.filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(19);
    for (const each of refused) expect(each).toMatchObject({ reason: taken });
  });

  it('does not change what another failure of the write means', async () => {
    const again = uids.claim(app('b'), () => insert('apps', { _id: 'app_1', uid: 'b' }));
    await expect(again).rejects.toMatchObject({ code: 11_000 });
  });

  it('of what is under something deleted is free at once', async () => {
    const { db } = database;
    await insert('webhooks', { _id: 'wh_1', projectId: 'proj_1', appId: 'app_1', uid: 'a' });
    await insert('webhooks', { _id: 'wh_2', projectId: 'proj_1', appId: null, uid: 'b' });
    await insert('apps', { _id: 'app_2', projectId: 'proj_2', uid: 'b' });
    await insert('webhooks', { _id: 'wh_3', projectId: 'proj_2', appId: 'app_2', uid: 'c' });
    const holderOf = (uid: string) => uids.holderOf({ companyId, kind: 'webhook', uid });
    expect(await Promise.all(['a', 'b', 'c'].map(holderOf))).toEqual(['wh_1', 'wh_2', null]);
    await collection(db, 'apps').deleteOne({ _id: 'app_1' });
    expect(await holderOf('a')).toBeNull();
    await collection(db, 'projects').deleteOne({ _id: 'proj_1' });
    await insert('projects', { _id: 'proj_3' });
    const write = () =>
      insert('webhooks', { _id: 'wh_4', projectId: 'proj_3', appId: null, uid: 'b' });
    const own = { companyId, kind: 'webhook', uid: 'b' } as const;
    expect(await uids.idOf(own)).toBe('wh_2');
    await uids.claim(own, write);
    expect([await holderOf('b'), await uids.idOf(own)]).toEqual(['wh_4', 'wh_4']);
    // What is being deleted is still there, until the deletion comes to it.
    expect(await collection(db, 'webhooks').countDocuments({ _id: 'wh_2' })).toBe(1);
  });

  it('is cached until what has it changes, and only while that is noticed', async () => {
    const { db } = database;
    const move = (from: string, to: string) =>
      collection(db, 'apps')
        .updateOne({ _id: from }, { $unset: { uid: '' } })
        .then(() => insert('apps', { _id: to, projectId: 'proj_1', uid: 'a' }));
    expect(await uids.idOf(app('a'))).toBe('app_1');
    await move('app_1', 'app_2');
    expect(await uids.idOf(app('a'))).toBe('app_1');
    uids.cache.forget('app_1');
    expect(await uids.idOf(app('a'))).toBe('app_2');
    // An unknown one is looked up each time.
    expect(await uids.idOf(app('z'))).toBeNull();
    await insert('apps', { _id: 'app_9', projectId: 'proj_1', uid: 'z' });
    expect(await uids.idOf(app('z'))).toBe('app_9');
    expect(uids.cache.usedSize()).toBeLessThanOrEqual(10_000);
  });

  it.each(['projects', 'apps', 'webhooks'] as const)(
    'is looked up in an index of %s',
    async (name) => {
      const found = documentsOf(database.db, name, companyId).find({ uid: 'a' });
      const plan = JSON.stringify(await found.limit(1).explain('queryPlanner'));
      expect(plan).toContain('companyId_1_uid_1');
      expect(plan).not.toContain('COLLSCAN');
    },
  );
});
