import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { createCompany, withCompanyId } from '../../support/process/companies.ts';
import {
  aTime,
  anId,
  dataOf,
  expectDeleted,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { createResources, type Resources, type ShownProject } from '../../support/api/resources.ts';

let posthorn: OwnCompany;
let api: ApiClient;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  api = withCompanyId(posthorn);
  make = createResources(posthorn.api);
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

const path = (id: string): string => `/api/v1/projects/${id}`;

describe('Projects · POST /projects', () => {
  it('returns the project without company, environment and a description that was not given', async () => {
    expect(dataOf(await posthorn.api.post('/projects', { name: 'Shop' }), 201)).toEqual({
      id: anId('proj'),
      name: 'Shop',
      createdAt: aTime,
      updatedAt: aTime,
    });
  });

  it('returns the description that was given', async () => {
    const made = await make.project({ description: 'All of them' });
    expect(Object.keys(made).sort()).toEqual([
      ...['createdAt', 'description', 'id', 'name', 'updatedAt'],
    ]);
    expect(made).toMatchObject({ description: 'All of them' });
  });

  it('takes an environment, which only the other operations show', async () => {
    const { id } = await make.project({ environment: 'production' });
    expect(dataOf(await api.get(path(id)))).toMatchObject({ environment: 'production' });
  });

  it.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: null }, 'name'],
    [{ name: ['a'] }, 'name'],
    [{ name: 'a', description: 'x'.repeat(1_001) }, 'description'],
    [{ name: 'a', description: null }, 'description'],
    [{ name: 'a', environment: 'staging' }, 'environment'],
    [{ name: 'a', company: 'comp_1' }, 'company'],
    [{ name: 'a', id: 'proj_1' }, 'id'],
  ])('refuses %j because of %s', async (body, problem) => {
    expectInvalid(await posthorn.api.post('/projects', body), problem);
  });

  it.each([
    ['one character', { name: 'x' }],
    ['a hundred characters', { name: 'x'.repeat(100) }],
    ['a hundred characters of two code units each', { name: '😀'.repeat(100) }],
    ['a description of a thousand', { name: 'x', description: 'ü'.repeat(1_000) }],
  ])('takes %s', async (_what, fields) => {
    const { id } = await make.project(fields);
    expect(dataOf(await api.get(path(id)))).toMatchObject(fields);
  });
});

describe('Projects · GET /api/v1/projects', () => {
  let own: ApiClient;
  let ids: string[] = [];

  beforeAll(async () => {
    const company = await createCompany(posthorn, 'Lists');
    own = withCompanyId({ ...posthorn, ...company });
    for (const name of ['A', 'B', 'C']) {
      ids = [...ids, (await createResources(own).project({ name })).id];
    }
  });

  const listed = async (query: string): Promise<string[]> =>
    dataOf<ShownProject[]>(await own.get(`/api/v1/projects${query}`)).map(({ id }) => id);

  it('returns the projects of the company, oldest first, with company and environment', async () => {
    const shown = dataOf<ShownProject[]>(await own.get('/api/v1/projects'));
    expect(shown.map(({ id }) => id)).toEqual(ids);
    expect(shown[0]).toEqual({
      id: anId('proj'),
      name: 'A',
      company: anId('comp'),
      environment: 'development',
      createdAt: aTime,
      updatedAt: aTime,
    });
  });

  it('takes limit and skip', async () => {
    expect(await listed('?limit=2')).toEqual(ids.slice(0, 2));
    expect(await listed('?limit=1&skip=1')).toEqual(ids.slice(1, 2));
    expect(await listed('?skip=3')).toEqual([]);
    expect(await listed('?limit=1000&skip=0')).toEqual(ids);
  });

  it.each(['limit=0', 'limit=1001', 'limit=x', 'limit=', 'limit=1.5', 'limit=-1', 'limit=1e2'])(
    'refuses %s',
    async (query) => {
      expectInvalid(await own.get(`/api/v1/projects?${query}`), 'limit');
    },
  );

  it.each(['skip=-1', 'skip=x', 'skip=0.5', 'skip='])('refuses %s', async (query) => {
    expectInvalid(await own.get(`/api/v1/projects?${query}`), 'skip');
  });
});

describe('Projects · GET /api/v1/projects/{projectId}', () => {
  it('returns the project with company and environment, and requires no companyid', async () => {
    const { id, createdAt } = await make.project({ name: 'Shop', description: 'D' });
    expect(dataOf(await posthorn.api.get(path(id)))).toEqual({
      id,
      name: 'Shop',
      description: 'D',
      company: posthorn.companyId,
      environment: 'development',
      createdAt,
      updatedAt: createdAt,
    });
  });

  it('returns 404 for an unknown id', async () => {
    expectNotFound(await posthorn.api.get(path(`proj_${'0'.repeat(26)}`)));
  });
});

describe('Projects · PUT /api/v1/projects/{projectId}', () => {
  it('changes the given fields, keeps the others and updates updatedAt', async () => {
    const made = await make.project({ name: 'Old', description: 'Stays' });
    const changed = dataOf<ShownProject>(await posthorn.api.put(path(made.id), { name: 'New' }));
    expect(changed).toMatchObject({
      name: 'New',
      description: 'Stays',
      company: posthorn.companyId,
      environment: 'development',
      createdAt: made.createdAt,
    });
    expect(changed.updatedAt > made.updatedAt).toBe(true);
    expect(dataOf(await posthorn.api.get(path(made.id)))).toEqual(changed);
  });

  it('changes nothing when no field is given, not even updatedAt', async () => {
    const { id, updatedAt } = await make.project();
    expect(dataOf(await posthorn.api.put(path(id), {}))).toMatchObject({ updatedAt });
  });

  it.each([
    [{ name: '' }, 'name'],
    [{ name: null }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ description: 'x'.repeat(1_001) }, 'description'],
    [{ environment: 'production' }, 'environment'],
    [{ company: 'comp_1' }, 'company'],
  ])('refuses %j because of %s', async (body, problem) => {
    const { id } = await make.project();
    expectInvalid(await posthorn.api.put(path(id), body), problem);
  });

  it('returns 404 for an unknown id', async () => {
    expectNotFound(await posthorn.api.put(path('proj_unknown'), { name: 'New' }));
  });
});

describe('Projects · DELETE /api/v1/projects/{projectId}', () => {
  it('returns the envelope only, and the project is gone', async () => {
    const { id } = await make.project();
    expectDeleted(await posthorn.api.delete(path(id)));
    expectNotFound(await posthorn.api.get(path(id)));
    expectNotFound(await posthorn.api.delete(path(id)));
    const left = dataOf<ShownProject[]>(await api.get('/api/v1/projects'));
    expect(left.map((project) => project.id)).not.toContain(id);
  });
});
