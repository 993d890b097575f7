import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createApiClient, type ApiClient } from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import { dataOf, expectFailure, expectNotFound } from '../../../support/api/expect-answers.ts';
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
import { eventually } from '../../../support/time/eventually.ts';

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

const revoke = (id: string, api = posthorn.api) => api.delete(`/api/v1/portal-links/${id}`);

describe('The end of a visit', () => {
  it('comes when its link is revoked, also for its stream, and is audited', async () => {
    const link = await makeLink();
    const cookie = await openLink(posthorn.baseUrl, link);
    const visitor = visitWith(cookie, link.id);
    dataOf(await visitor.get('/webhooks'));
    const headers = { cookie, 'x-posthorn-session': 'portal' };
    const stream = await fetch(`${posthorn.baseUrl}/api/v1/live`, { headers });
    expect(stream.status).toBe(200);
    expect((await revoke(link.id)).status).toBe(200);
    for (const path of ['/webhooks', PORTAL_SESSION]) {
      expectFailure(await visitor.get(path), 401, 'unauthorized');
    }
    await stream.text();
    const [event] = await readAuditEvents(posthorn.api, { action: 'portal_link.revoked' });
    expect(event).toMatchObject({ target: { kind: 'portalLink', id: link.id }, outcome: 'done' });
    expectNotFound(await revoke(link.id));
  }, 30_000);

  it('comes before it began when its link is revoked', async () => {
    const { id, token } = await makeLink();
    expect((await revoke(id)).status).toBe(200);
    const nobody = createApiClient(posthorn.baseUrl, null);
    expectFailure(await nobody.post(PORTAL_SESSION, { link: token }), 410, 'link_revoked');
  });

  it('comes by signing out, also for who has a copy of the cookie', async () => {
    const link = await makeLink();
    const cookie = await openLink(posthorn.baseUrl, link);
    const visitor = visitWith(cookie, link.id);
    dataOf(await visitor.get('/webhooks'));
    const answer = await visitor.delete(PORTAL_SESSION);
    expect([answer.status, cookieOf(answer)]).toEqual([200, 'posthorn_portal=']);
    expectFailure(await visitor.get('/webhooks'), 401, 'unauthorized');
    const [ended] = await readAuditEvents(posthorn.api, { action: 'portal_link.revoked' });
    const { id: linkId } = link;
    const actor = { kind: 'portalLink', linkId };
    expect(ended).toMatchObject({ actor, target: { kind: 'portalLink', id: linkId } });
    const beside = await openLink(posthorn.baseUrl, await makeLink());
    dataOf(await visitWith(beside).get('/webhooks'));
  });

  it('comes with the end of its app', async () => {
    const { id } = await createResources(posthorn.api).app();
    const link = await makePortalLink(posthorn.api, id, { capabilities: ['view'] });
    const visitor = visitWith(await openLink(posthorn.baseUrl, link));
    dataOf(await visitor.get('/webhooks'));
    await posthorn.api.delete(`/api/v1/apps/${id}`, { companyid: posthorn.companyId });
    await eventually('the end', async () => (await visitor.get('/webhooks')).status === 401);
  });

  it('is not for a key of another app to bring about', async () => {
    const { id } = await makeLink();
    const { id: otherId } = await createResources(posthorn.api).app();
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Other', appId: otherId });
    const { key } = dataOf<{ key: string }>(made, 201);
    expectNotFound(await revoke(id, createApiClient(posthorn.baseUrl, key)));
    expectNotFound(await revoke('plnk_unknown'));
  });
});
