import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { createApiClient, type ApiClient } from '../../../support/api/api-client.ts';
import { dataOf, expectFailure } from '../../../support/api/expect-answers.ts';
import { createResources } from '../../../support/api/resources.ts';
import {
  cookieOf,
  createSessionClient,
  makePortalLink,
  openLink,
  PORTAL_SESSION,
  SESSION,
  type MadeLink,
} from '../../../support/api/session-client.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';

let posthorn: OwnCompany;
let appId: string;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  ({ id: appId } = await createResources(posthorn.api).app());
}, 120_000);

afterAll(() => posthorn.stop(), 60_000);

const makeLink = (api: ApiClient = posthorn.api): Promise<MadeLink> =>
  makePortalLink(api, appId, { capabilities: ['view'] });

const visitWith = (cookie: string, id?: string): ApiClient =>
  createSessionClient(posthorn.baseUrl, cookie, id === undefined ? 'portal' : `portal ${id}`);

describe('The sessions of one browser', () => {
  it('are not mixed: a visit that another one replaced is told', async () => {
    const [first, second] = [await makeLink(), await makeLink()];
    await openLink(posthorn.baseUrl, first);
    const cookie = await openLink(posthorn.baseUrl, second);
    const before = visitWith(cookie, first.id);
    for (const path of ['/webhooks', PORTAL_SESSION]) {
      expectFailure(await before.get(path), 401, 'session_replaced');
      dataOf(await visitWith(cookie, second.id).get(path));
      dataOf(await visitWith(cookie, posthorn.companyId).get(path));
      expectFailure(await visitWith(cookie, 'comp_other').get(path), 401, 'session_replaced');
    }
    expectFailure(await before.delete(PORTAL_SESSION), 401, 'session_replaced');
    dataOf(await visitWith(cookie, second.id).get('/webhooks'));
  });

  it('are not mixed in the dashboard either', async () => {
    const nobody = createApiClient(posthorn.baseUrl, null);
    const cookie = cookieOf(await nobody.post(SESSION, { apiKey: posthorn.apiKey }));
    const named = (id: string) => createSessionClient(posthorn.baseUrl, cookie, `1 ${id}`);
    dataOf(await named(posthorn.companyId).get('/webhooks'));
    expectFailure(await named('comp_other').get('/webhooks'), 401, 'session_replaced');
  });

  it('do not open a link of another company than that of the page', async () => {
    const { token, id } = await makeLink();
    const header = { 'x-posthorn-session': 'portal comp_other' };
    const page = createApiClient(posthorn.baseUrl, null, header);
    expectFailure(await page.post(PORTAL_SESSION, { link: token }), 404, 'link_unknown');
    dataOf(await visitWith(await openLink(posthorn.baseUrl, { token, id })).get('/webhooks'));
  });

  it('do not stand in for each other: a visitor gets to the sign-in of the dashboard', async () => {
    const cookie = await openLink(posthorn.baseUrl, await makeLink());
    const dashboard = createSessionClient(posthorn.baseUrl, cookie);
    expectFailure(await dashboard.get(SESSION), 401, 'unauthorized');
    expectFailure(await dashboard.get('/webhooks'), 401, 'unauthorized');
  });
});
