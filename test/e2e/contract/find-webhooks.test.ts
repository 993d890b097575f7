import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiClient } from '../../support/api/api-client.ts';
import { aTime, dataOf, expectInvalid, expectNotFound } from '../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';

let posthorn: OwnCompany;
let make: Resources;
let appId: string;
let otherId: string;
/** The oldest first; the last one is of the other app. */
const ids: string[] = [];

beforeAll(async () => {
  posthorn = await joinShared('contract');
  make = createResources(posthorn.api);
  ({ id: appId } = await make.app({ name: 'Orders' }));
  ({ id: otherId } = await make.app());
  for (const [of, path, name] of [
    [appId, 'Orders', 'First'],
    [appId, 'payments', 'Second'],
    [otherId, 'orders/late', 'Third'],
  ]) {
    const fields = { appId: of, url: `http://127.0.0.1:1/${String(path)}`, name };
    ids.push((await make.webhook(fields)).id);
  }
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

const find = (query: string, api = posthorn.api) => api.get(`/api/v1/find-webhooks${query}`);
const idsOf = async (query: string, api = posthorn.api): Promise<string[]> =>
  dataOf<{ id: string }[]>(await find(query, api)).map(({ id }) => id);
const keyOfOneApp = async () => {
  const made = await posthorn.api.post('/api/v1/api-keys', { name: 'One', appId });
  return createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
};

describe('Webhooks of all apps · GET /api/v1/find-webhooks', () => {
  it('are found by part of their URL or name, newest first, without secrets', async () => {
    const [first = '', second, third = ''] = ids;
    const found = await find('?text=oRDERS');
    expect(dataOf(found)).toEqual([
      expect.objectContaining({ id: third, appId: otherId }),
      {
        id: first,
        url: 'http://127.0.0.1:1/Orders',
        name: 'First',
        eventTypes: [],
        disabled: false,
        appId,
        appName: 'Orders',
        createdAt: aTime,
      },
    ]);
    expect(JSON.stringify(found.body)).not.toContain('whsec_');
    expect(await idsOf('?text=second')).toEqual([second]);
    expect(await idsOf('?text=refunds')).toEqual([]);
  });

  it('are found by their ids, of one app, and page by page', async () => {
    const [first = '', second = '', third = ''] = ids;
    expect(await idsOf(`?text=${second}`)).toEqual([second]);
    expect(await idsOf(`?ids=${first},wh_unknown,${third}`)).toEqual([third, first]);
    expect(await idsOf(`?appId=${appId}`)).toEqual([second, first]);
    expect(await idsOf(`?appId=${appId}&text=orders`)).toEqual([first]);
    const page = await find('?limit=2');
    expect(dataOf<{ id: string }[]>(page).map(({ id }) => id)).toEqual([third, second]);
    const last = await find(`?limit=2&cursor=${String(page.body.nextCursor)}`);
    expect(dataOf<{ id: string }[]>(last).map(({ id }) => id)).toEqual([first]);
    expect(last.body.nextCursor).toBeNull();
  });

  it('are only those of its app for a key of one app', async () => {
    const [first = '', second, third = ''] = ids;
    const api = await keyOfOneApp();
    expect(await idsOf('', api)).toEqual([second, first]);
    expect(await idsOf(`?ids=${third}`, api)).toEqual([]);
    expectNotFound(await find(`?appId=${otherId}`, api));
  });

  it.each(['ids=', 'ids=,,,', 'limit=0', 'text='])('refuse %s', async (query) => {
    expectInvalid(await find(`?${query}`), query.split('=')[0] ?? '');
  });

  it('refuse more than 100 ids', async () => {
    expectInvalid(await find(`?ids=${Array(101).fill('wh_1').join(',')}`), 'ids');
  });
});

describe('Counts of apps · GET /api/v1/app-counts', () => {
  it('are those of their webhooks and attempts, of apps that exist', async () => {
    const counted = await posthorn.api.get(`/api/v1/app-counts?ids=${appId},${otherId},app_none`);
    const sorted = dataOf<{ appId: string }[]>(counted).sort((a, b) =>
      a.appId < b.appId ? -1 : 1,
    );
    expect(sorted).toEqual([
      { appId, webhooks: 2, succeeded: 0, failed: 0 },
      { appId: otherId, webhooks: 1, succeeded: 0, failed: 0 },
    ]);
  });

  it('are only those of its app for a key of one app', async () => {
    const api = await keyOfOneApp();
    const counted = await api.get(`/api/v1/app-counts?ids=${appId},${otherId}`);
    expect(dataOf<{ appId: string }[]>(counted).map((each) => each.appId)).toEqual([appId]);
  });

  it('refuse more than 20 ids', async () => {
    const answer = await posthorn.api.get(
      `/api/v1/app-counts?ids=${Array(21).fill(appId).join(',')}`,
    );
    expectInvalid(answer, 'ids');
  });
});
