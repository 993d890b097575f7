import { beforeAll, describe, expect, it } from '@jest/globals';
import { type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectDeleted,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { createResources, type ShownApp, type ShownProject } from '../../support/api/resources.ts';
import { createCompany, withCompanyId } from '../../support/process/companies.ts';
import { useCompany } from '../../support/process/use-company.ts';

describe('Projects', () => {
  const { posthorn, make } = useCompany('contract');
  let api: ApiClient;

  beforeAll(() => {
    api = withCompanyId(posthorn);
  });

  const path = (id: string): string => `/api/v1/projects/${id}`;

  describe('Projects · POST /projects', () => {
    it('returns the project without company, environment and absent description', async () => {
      expect(dataOf(await posthorn.api.post('/projects', { name: 'Shop' }), 201)).toEqual({
        id: anId('proj'),
        uid: null,
        name: 'Shop',
        metadata: {},
        eventTypePolicy: 'open',
        createdAt: aTime,
        updatedAt: aTime,
      });
    });

    it('returns the description that was given', async () => {
      const made = await make.project({ description: 'All of them' });
      expect(Object.keys(made).sort()).toEqual([
        ...['createdAt', 'description', 'eventTypePolicy', 'id', 'metadata', 'name', 'uid'],
        'updatedAt',
      ]);
      expect(made).toMatchObject({ description: 'All of them' });
    });

    it('takes an environment, which only the other operations show', async () => {
      const { id } = await make.project({ environment: 'production' });
      expect(dataOf(await api.get(path(id)))).toMatchObject({ environment: 'production' });
    });

    it('names each field that is missing, wrong or unknown', async () => {
      const answer = await posthorn.api.post('/projects', { company: 'comp_1', metadata: [] });
      expectInvalid(answer, 'company', 'metadata', 'name');
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
        uid: null,
        name: 'A',
        metadata: {},
        eventTypePolicy: 'open',
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
      expectInvalid(await own.get('/api/v1/projects?limit=0&skip=-1'), 'limit', 'skip');
    });
  });

  describe('Projects · GET /api/v1/projects/{projectId}', () => {
    it('returns the project with company and environment, and requires no companyid', async () => {
      const { id, createdAt } = await make.project({ name: 'Shop', description: 'D' });
      expect(dataOf(await posthorn.api.get(path(id)))).toEqual({
        id,
        uid: null,
        name: 'Shop',
        description: 'D',
        metadata: {},
        eventTypePolicy: 'open',
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

    it('refuses another environment and company', async () => {
      const { id } = await make.project();
      const changes = { environment: 'production', company: 'comp_1' };
      expectInvalid(await posthorn.api.put(path(id), changes), 'company', 'environment');
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
});

describe('Apps', () => {
  const UNKNOWN_PROJECT = `proj_${'0'.repeat(26)}`;

  const { posthorn, make } = useCompany('contract');
  /** Sends the header companyid, which every operation but the creation requires. */
  let api: ApiClient;
  let projectId: string;

  beforeAll(async () => {
    api = withCompanyId(posthorn);
    ({ id: projectId } = await make.project());
  }, 120_000);

  describe('Apps · POST /apps', () => {
    it('returns an app with an empty description, in development, and without its project', async () => {
      const { body } = await posthorn.api.post('/apps', { name: 'Customer', projectId });
      expect(body.data).toEqual({
        id: anId('app'),
        uid: null,
        name: 'Customer',
        description: '',
        metadata: {},
        held: null,
        environment: 'development',
        createdAt: aTime,
        updatedAt: aTime,
      });
    });

    it('names each field that is missing, wrong or unknown', async () => {
      const answer = await posthorn.api.post('/apps', { name: '', company: 'x' });
      expectInvalid(answer, 'company', 'name', 'projectId');
    });

    it('returns 404 for an unknown project', async () => {
      expectNotFound(await posthorn.api.post('/apps', { name: 'App', projectId: UNKNOWN_PROJECT }));
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

    it('skips the number of apps in skip', async () => {
      expect(await list('&skip=0&limit=2')).toEqual(apps.slice(0, 2));
      expect(await list('&skip=10')).toEqual(apps.slice(10));
      expect(await list('&skip=12')).toEqual([]);
    });

    it('returns only the apps of the environment in the query', async () => {
      const names = async (query: string) => (await list(query)).map(({ name }) => name);
      expect(await names('&environment=production')).toEqual(['App 0', 'App 3', 'App 6', 'App 9']);
      expect(await names('&environment=production&skip=1&limit=2')).toEqual(['App 3', 'App 6']);
      expect(await names('&environment=development')).toHaveLength(8);
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

    it('may be spelled PATCH, at both addresses', async () => {
      const app = await make.app({ projectId, name: 'Old', description: 'Old' });
      for (const [path, name] of [
        [`/apps/${app.id}`, 'New'],
        [`/api/v1/apps/${app.id}`, 'Newer'],
      ] as const) {
        const changed = dataOf<ShownApp>(await api.request('PATCH', path, { name }));
        expect(changed).toMatchObject({ name, description: 'Old' });
      }
    });

    it('changes nothing when no field is given, not even updatedAt', async () => {
      const app = await make.app({ projectId });
      expect(dataOf(await api.put(`/apps/${app.id}`, {}))).toEqual(app);
    });

    it('refuses another environment and project', async () => {
      const { id } = await make.app({ projectId });
      const changes = { environment: 'production', projectId: 'proj_1' };
      expectInvalid(await api.put(`/apps/${id}`, changes), 'environment', 'projectId');
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
});

describe('Apps of all projects · GET /api/v1/find-apps', () => {
  interface FoundApp {
    id: string;
    projectName: string;
  }

  const { posthorn } = useCompany('contract');
  let projectId: string;
  /** Apps of two projects, the oldest first. */
  const ids: string[] = [];

  beforeAll(async () => {
    const make = createResources(posthorn.api);
    ({ id: projectId } = await make.project({ name: 'Shop' }));
    const { id: otherId } = await make.project({ name: 'Bank' });
    for (const [name, of] of [
      ['Orders north', projectId],
      ['Payments', otherId],
      ['Orders south', otherId],
    ]) {
      ids.push((await make.app({ name, projectId: of })).id);
    }
  }, 120_000);

  const find = (query: string, api = posthorn.api) => api.get(`/api/v1/find-apps${query}`);
  const idsOf = async (query: string, api = posthorn.api): Promise<string[]> =>
    dataOf<FoundApp[]>(await find(query, api)).map(({ id }) => id);

  it('are found by part of their names, with their projects', async () => {
    const [first = '', , third = ''] = ids;
    expect(dataOf(await find('?text=oRDERS'))).toEqual([
      {
        id: first,
        uid: null,
        name: 'Orders north',
        environment: 'development',
        held: null,
        projectId,
        projectName: 'Shop',
      },
      expect.objectContaining({ id: third, projectName: 'Bank' }),
    ]);
    expect(await idsOf('?text=refunds')).toEqual([]);
  });

  it('are found by their id, and listed without a text, page by page', async () => {
    expect(await idsOf(`?text=${ids[1] ?? ''}`)).toEqual([ids[1]]);
    expect(await idsOf('')).toEqual(ids);
    const first = await find('?limit=2');
    expect(dataOf<FoundApp[]>(first).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const last = await find(`?limit=2&cursor=${String(first.body.nextCursor)}`);
    expect(dataOf<FoundApp[]>(last).map(({ id }) => id)).toEqual(ids.slice(2));
    expect(last.body.nextCursor).toBeNull();
  });

  it('are found by a list of ids', async () => {
    const [first = '', second = '', third = ''] = ids;
    expect(await idsOf(`?ids=${third},app_unknown,${first},uid:unknown`)).toEqual([first, third]);
    expect(await idsOf(`?ids=${second},${third}&text=orders`)).toEqual([third]);
    expectInvalid(await find(`?ids=${Array(101).fill('app_1').join(',')}`), 'ids');
  });

  it('shows a key of one app only this app', async () => {
    const body = { name: 'One', appId: ids[2] };
    const created = dataOf<{ key: string }>(await posthorn.api.post('/api/v1/api-keys', body), 201);
    const limited = createApiClient(posthorn.baseUrl, created.key, {});
    expect(await idsOf('', limited)).toEqual([ids[2]]);
    expect(await idsOf('?text=payments', limited)).toEqual([]);
    expect(await idsOf(`?ids=${ids[0] ?? ''}`, limited)).toEqual([]);
  });
});
