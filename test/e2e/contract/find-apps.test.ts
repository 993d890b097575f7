import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import { createResources } from '../../support/api/resources.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';

interface FoundApp {
  id: string;
  projectName: string;
}

let posthorn: OwnCompany;
let projectId: string;
/** Apps of two projects, the oldest first. */
const ids: string[] = [];

beforeAll(async () => {
  posthorn = await joinShared('contract');
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

afterAll(() => posthorn.stop(), 60_000);

const find = (query: string, api = posthorn.api) => api.get(`/api/v1/find-apps${query}`);
const idsOf = async (query: string, api = posthorn.api): Promise<string[]> =>
  dataOf<FoundApp[]>(await find(query, api)).map(({ id }) => id);

describe('Apps of all projects · GET /api/v1/find-apps', () => {
  it('are found by part of their names, with their projects', async () => {
    const [first = '', , third = ''] = ids;
    expect(dataOf(await find('?text=oRDERS'))).toEqual([
      {
        id: first,
        name: 'Orders north',
        environment: 'development',
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
    expectInvalid(await find('?limit=0'), 'limit');
  });

  it('are that of the key only, for a key of one app', async () => {
    const body = { name: 'One', appId: ids[2] };
    const created = dataOf<{ key: string }>(await posthorn.api.post('/api/v1/api-keys', body), 201);
    const limited = createApiClient(posthorn.baseUrl, created.key, {});
    expect(await idsOf('', limited)).toEqual([ids[2]]);
    expect(await idsOf('?text=payments', limited)).toEqual([]);
  });
});
