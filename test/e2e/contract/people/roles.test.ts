import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROLES, type Role } from '@posthorn/domain/people.ts';
import { pathsOf, type Route } from '../../../../services/gateway/src/http/route.ts';
import { everyRequest } from '../../../support/api/call-every-operation.ts';
import { readOperations } from '../../../support/api/request-places.ts';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { routeTable } from '../../../support/api/route-table.ts';
import {
  type CompanyWithIssuer,
  joinWithIssuer,
} from '../../../support/people/join-with-issuer.ts';
import type { PersonBrowser } from '../../../support/people/person-browser.ts';

const HOLDS = ['/webhooks', '/apps'].flatMap((path) =>
  ['hold', 'resume'].map((action) => `post ${path}/:${path.slice(1, -1)}Id/${action}`),
);

/** The table of docs/people.md, for any route that there is or comes. */
function mayUse(role: Role, { method, path, scope }: Route): boolean {
  if (role === 'admin' || scope === undefined || scope === 'read') return true;
  if (role === 'viewer') return false;
  return scope === 'messages:write' || HOLDS.includes(`${method} ${path}`);
}

/** Nothing has one of them, so that requests which are allowed change little. */
const UNKNOWN = {
  projectId: 'proj_1',
  appId: 'app_1',
  webhookId: 'wh_1',
  messageId: 'msg_1',
  deliveryId: 'dlv_1',
  resendId: 'rsnd_1',
  cancellationId: 'cncl_1',
  keyId: 'key_1',
  linkId: 'plnk_1',
  personId: 'usr_1',
  invitationId: 'inv_1',
  eventTypeName: 'order.unknown',
};

describe('The role of a person', () => {
  let posthorn: CompanyWithIssuer;

  beforeAll(async () => {
    posthorn = await joinWithIssuer('troles:');
    const groups = ROLES.map((role) => ({ group: `roles-${role}`, role }));
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
  }, 120_000);

  afterAll(() => posthorn.stop());

  async function enterAs(role: Role): Promise<PersonBrowser> {
    const browser = posthorn.browser();
    const login = { sub: role, claims: { groups: [`roles-${role}`] } };
    expect(await browser.signIn(login)).toBe('/dashboard/');
    return browser;
  }

  it.each(ROLES)('%s may use the routes of the table, and no other', async (role) => {
    const routes = new Map<string, Route>(
      routeTable().flatMap((route) => {
        const address = pathsOf(route)[0].replaceAll(/:(\w+)/g, '{$1}');
        return [[`${route.method} ${address}`, route] as const];
      }),
    );
    const operations = await readOperations(posthorn.baseUrl);
    const requests = await everyRequest(posthorn.baseUrl, UNKNOWN);
    expect([operations.length, requests.length]).toEqual([routes.size, routes.size]);
    const { api } = await enterAs(role);
    const wrong: string[] = [];
    let refused = 0;
    for (const [index, { method, path, body }] of requests.entries()) {
      const name = `${method.toLowerCase()} ${String(operations[index]?.path)}`;
      const route = routes.get(name);
      if (!route) throw new Error(`there is no route ${name}`);
      const headers = { companyid: posthorn.companyId };
      const { status, body: answer } = await api.request(method, path, body ?? undefined, headers);
      const isRefused = status === 403 && answer.code === 'insufficient_scope';
      if (isRefused === mayUse(role, route)) wrong.push(`${name} ${status} ${String(answer.code)}`);
      refused += Number(isRefused);
    }
    expect(wrong).toEqual([]);
    expect(refused > 0).toBe(role !== 'admin');
  });
});
