import { describe, expect, test } from '@jest/globals';
import { type ApiError, notFound } from '../api-error.ts';
import { quotaExceeded } from './quotas.ts';
import { createResolveUids, type OwnUid, uidTaken, upsertByUid } from './uids.ts';

describe('what a request names', () => {
  const asked: OwnUid[] = [];
  const resolve = createResolveUids((own) => {
    asked.push(own);
    return Promise.resolve(own.uid === 'unknown' ? null : `${own.kind}_of_${own.uid}`);
  });
  const companyId = 'comp_1';

  test('is passed on as it is without a uid', () => {
    const named = { appId: 'app_1', webhookId: undefined, payload: 'uid:x', ids: 'wh_1' };
    expect(resolve(named, { companyId, idsOf: 'webhook' })).toBe(named);
    const others = { ids: 'uid:a', messageId: 'uid:b' };
    expect(resolve(others, { companyId })).toBe(others);
    expect(asked).toEqual([]);
  });

  test('has the id in place of each uid, and an unknown one as it is', async () => {
    const named = { projectId: 'uid:a', appId: 'uid:unknown', webhookId: 'uid:a b', name: 'n' };
    const resolved = { ...named, projectId: 'project_of_a' };
    expect(await resolve(named, { companyId })).toEqual(resolved);
    expect(asked).toEqual([
      { companyId, kind: 'project', uid: 'a' },
      { companyId, kind: 'app', uid: 'unknown' },
    ]);
  });

  test('has ids in its list, in the same order', async () => {
    const ids = 'app_1,uid:a,uid:unknown';
    expect(await resolve({ ids }, { companyId, idsOf: 'app' })).toEqual({
      ids: 'app_1,app_of_a,uid:unknown',
    });
  });
});

describe('an upsert', () => {
  const own: OwnUid = { companyId: 'comp_1', kind: 'app', uid: 'a' };
  /** What has the uid each time that somebody looks; the last one stays. */
  const uidsOf = (...holders: (string | null)[]) => ({
    holderOf: () => Promise.resolve((holders.length > 1 ? holders.shift() : holders[0]) ?? null),
  });
  const work = {
    given: undefined,
    create: () => Promise.resolve({ did: 'create' }),
    update: (id: string) => Promise.resolve({ did: `update ${id}` }),
  };
  const refuse = (error: ApiError) => () => Promise.reject(error);

  test('creates what nothing has the uid of, and updates what has it', async () => {
    const created = await upsertByUid(uidsOf(null), own, work);
    expect(created).toEqual({ did: 'create', isCreated: true });
    const updated = await upsertByUid(uidsOf('app_1'), own, work);
    expect(updated).toEqual({ did: 'update app_1', isCreated: false });
  });

  test.each([uidTaken(own), quotaExceeded('QUOTA_APPS_PER_COMPANY', 1)])(
    'updates what another request has created meanwhile: %s',
    async (error) => {
      const lost = { ...work, create: refuse(error) };
      const result = await upsertByUid(uidsOf(null, 'app_1'), own, lost);
      expect(result).toEqual({ did: 'update app_1', isCreated: false });
    },
  );

  test('creates what was deleted meanwhile', async () => {
    const late = { ...work, update: refuse(notFound('app')) };
    const result = await upsertByUid(uidsOf('app_1', null), own, late);
    expect(result).toEqual({ did: 'create', isCreated: true });
  });

  test.each([
    ['a full quota', null, quotaExceeded('QUOTA_APPS_PER_COMPANY', 1)],
    ['an unknown project', null, notFound('project')],
    ['another owner', 'app_1', uidTaken(own)],
  ])('is refused because of %s', async (_why, holder, error) => {
    const refused = { ...work, create: refuse(error), update: refuse(error) };
    await expect(upsertByUid(uidsOf(holder), own, refused)).rejects.toBe(error);
  });

  test('is refused when its body has another uid than its address', async () => {
    const other = upsertByUid(uidsOf(null), own, { ...work, given: 'b' });
    await expect(other).rejects.toMatchObject({ problems: [{ path: 'uid' }] });
    expect(await upsertByUid(uidsOf(null), own, { ...work, given: 'a' })).toMatchObject({
      isCreated: true,
    });
  });
});
