import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { withCompanyId } from '../../support/process/companies.ts';
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
import { createResources, type Resources, type ShownApp } from '../../support/api/resources.ts';

const UNKNOWN_PROJECT = `proj_${'0'.repeat(26)}`;

let posthorn: OwnCompany;
/** Sends the header companyid, which every operation but the creation requires. */
let api: ApiClient;
let make: Resources;
let projectId: string;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  api = withCompanyId(posthorn);
  make = createResources(posthorn.api);
  ({ id: projectId } = await make.project());
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

describe('Apps · POST /apps', () => {
  it('returns an app with an empty description, in development, and without its project', async () => {
    const { body } = await posthorn.api.post('/apps', { name: 'Customer', projectId });
    expect(body.data).toEqual({
      id: anId('app'),
      name: 'Customer',
      description: '',
      environment: 'development',
      createdAt: aTime,
      updatedAt: aTime,
    });
  });

  it.each(['development', 'production'])('takes the environment %s', async (environment) => {
    const made = await make.app({ projectId, environment, description: 'D' });
    expect(made).toMatchObject({ environment, description: 'D' });
  });

  it('names all missing fields at once', async () => {
    expectInvalid(await posthorn.api.post('/apps', {}), 'name', 'projectId');
  });

  it.each([
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 1 }, 'name'],
    [{ description: 'x'.repeat(1_001) }, 'description'],
    [{ environment: 'Production' }, 'environment'],
    [{ environment: null }, 'environment'],
    [{ projectId: '' }, 'projectId'],
    [{ projectId: 5 }, 'projectId'],
    [{ company: 'x' }, 'company'],
  ])('refuses %j because of %s', async (fields, problem) => {
    expectInvalid(await posthorn.api.post('/apps', { name: 'App', projectId, ...fields }), problem);
  });

  it('returns 404 for an unknown project', async () => {
    expectNotFound(await posthorn.api.post('/apps', { name: 'App', projectId: UNKNOWN_PROJECT }));
  });

  it('takes project_id, and refuses two spellings with different values', async () => {
    const body = { name: 'App', project_id: projectId };
    dataOf(await posthorn.api.post('/apps', body), 201);
    dataOf(await posthorn.api.post('/apps', { ...body, projectId }), 201);
    expectInvalid(await posthorn.api.post('/apps', { ...body, projectId: 'other' }), 'projectId');
  });
});

describe('Apps · GET /apps', () => {
  let listed: string;
  let apps: ShownApp[] = [];

  beforeAll(async () => {
    ({ id: listed } = await make.project());
    for (let n = 0; n < 12; n += 1) {
      const environment = n % 3 === 0 ? 'production' : 'development';
      const app = await make.app({ projectId: listed, name: `App ${n}`, environment });
      apps = [...apps, app];
    }
    await make.app({ projectId });
  });

  const list = async (query = ''): Promise<ShownApp[]> =>
    dataOf(await api.get(`/apps?projectId=${listed}${query}`));

  it('returns the apps of the project, oldest first, ten by default', async () => {
    expect(await list()).toEqual(apps.slice(0, 10));
  });

  it('returns at most limit apps', async () => {
    expect(await list('&limit=1')).toEqual(apps.slice(0, 1));
    expect(await list('&limit=100')).toEqual(apps);
  });

  it('skips as many apps as skip says', async () => {
    expect(await list('&skip=0&limit=2')).toEqual(apps.slice(0, 2));
    expect(await list('&skip=10')).toEqual(apps.slice(10));
    expect(await list('&skip=12')).toEqual([]);
  });

  it('returns only the apps of the environment that is given', async () => {
    const names = async (query: string) => (await list(query)).map(({ name }) => name);
    expect(await names('&environment=production')).toEqual(['App 0', 'App 3', 'App 6', 'App 9']);
    expect(await names('&environment=production&skip=1&limit=2')).toEqual(['App 3', 'App 6']);
    expect(await names('&environment=development')).toHaveLength(8);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1.0', 'limit'],
    ['skip=-1', 'skip'],
    ['skip=x', 'skip'],
    ['environment=staging', 'environment'],
    ['environment=', 'environment'],
    ['offset=1', 'offset'],
  ])('refuses %s because of %s', async (query, problem) => {
    expectInvalid(await api.get(`/apps?projectId=${listed}&${query}`), problem);
  });

  it('requires projectId, in either spelling', async () => {
    expectInvalid(await api.get('/apps'), 'projectId');
    expect(dataOf(await api.get(`/apps?project_id=${listed}&limit=100`))).toEqual(apps);
  });

  it('names a missing companyid beside the other problems', async () => {
    expectInvalid(await posthorn.api.get('/apps?limit=0'), 'companyid', 'limit', 'projectId');
  });

  it('returns 404 for an unknown project', async () => {
    expectNotFound(await api.get(`/apps?projectId=${UNKNOWN_PROJECT}`));
  });
});

describe('Apps · GET /apps/{appId}', () => {
  it('returns the app as its creation did', async () => {
    const app = await make.app({ projectId, description: 'D' });
    expect(dataOf(await api.get(`/apps/${app.id}`))).toEqual(app);
  });

  it('returns 404 for an unknown id', async () => {
    expectNotFound(await api.get(`/apps/app_${'0'.repeat(26)}`));
  });
});

describe('Apps · PUT /apps/{appId}', () => {
  it.each([
    [{ name: 'New' }, { name: 'New', description: 'Old' }],
    [{ description: 'New' }, { name: 'Old', description: 'New' }],
    [{ description: '' }, { name: 'Old', description: '' }],
  ])('of %j makes %j and moves updatedAt', async (changes, expected) => {
    const app = await make.app({ projectId, name: 'Old', description: 'Old' });
    const changed = dataOf<ShownApp>(await api.put(`/apps/${app.id}`, changes));
    expect(changed).toEqual({ ...app, ...expected, updatedAt: aTime });
    expect(changed.updatedAt > app.updatedAt).toBe(true);
    expect(dataOf(await api.get(`/apps/${app.id}`))).toEqual(changed);
  });

  it('changes nothing when no field is given, not even updatedAt', async () => {
    const app = await make.app({ projectId });
    expect(dataOf(await api.put(`/apps/${app.id}`, {}))).toEqual(app);
  });

  it.each([
    [{ name: '' }, 'name'],
    [{ description: null }, 'description'],
    [{ environment: 'production' }, 'environment'],
    [{ projectId: 'proj_1' }, 'projectId'],
  ])('refuses %j because of %s', async (changes, problem) => {
    const { id } = await make.app({ projectId });
    expectInvalid(await api.put(`/apps/${id}`, changes), problem);
  });

  it('returns 404 for an unknown id', async () => {
    expectNotFound(await api.put('/apps/app_unknown', { name: 'New' }));
  });
});

describe('Apps · DELETE /apps/{appId}', () => {
  it('returns the envelope only, and the app is gone', async () => {
    const { id } = await make.app({ projectId });
    expectDeleted(await api.delete(`/apps/${id}`));
    expectNotFound(await api.get(`/apps/${id}`));
    expectNotFound(await api.delete(`/apps/${id}`));
    expectNotFound(await posthorn.api.post('/webhook-messages', { appId: id, payload: {} }));
  });
});
