import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { createApiClient } from '../../../support/api/api-client.ts';
import { readAuditEvents } from '../../../support/api/audit-events.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import { SESSION } from '../../../support/api/session-client.ts';
import {
  type CompanyWithIssuer,
  joinWithIssuer,
} from '../../../support/people/join-with-issuer.ts';
import type { PersonBrowser } from '../../../support/people/person-browser.ts';
import type { Login } from '../../../support/people/scripted-issuer.ts';
import { readEverything } from '../../../support/stores/stored-documents.ts';

const PEOPLE = '/api/v1/people';
/** Other test files give roles to groups in the same database. */
const GROUP = 'leaving-admins';

describe('A person who is removed', () => {
  let posthorn: CompanyWithIssuer;
  let mongo: MongoConnection;

  beforeAll(async () => {
    posthorn = await joinWithIssuer('tleaving:');
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    const groups = [{ group: GROUP, role: 'admin' }];
    dataOf(await posthorn.api.put('/api/v1/people-settings', { groups }));
  }, 120_000);

  afterAll(async () => {
    await mongo.close();
    await posthorn.stop();
  });

  async function enter(
    login: Login,
    asked?: object,
  ): Promise<{ browser: PersonBrowser; id: string }> {
    const browser = posthorn.browser();
    expect(await browser.signIn(login, asked)).toBe('/dashboard/');
    const { person } = dataOf<{ person: { id: string } }>(await browser.api.get(SESSION));
    return { browser, id: person.id };
  }

  async function collectionsWith(text: RegExp): Promise<string[]> {
    const stored = Object.entries(await readEverything(mongo.db));
    return stored.flatMap(([name, all]) => (text.test(JSON.stringify(all)) ? [name] : []));
  }

  it('leaves the API keys that they made, and the audit log says which', async () => {
    const claims = { name: 'Name of maker', email: 'maker@example.com', groups: [GROUP] };
    const { browser, id } = await enter({ sub: 'maker', claims });
    const made = await browser.api.post('/api/v1/api-keys', { name: 'Made by a person' });
    const key = dataOf<{ id: string; key: string }>(made, 201);
    expect(key).toMatchObject({ createdBy: id, expiresAt: null });
    expect(dataOf(await posthorn.api.get(`${PEOPLE}/${id}`))).toMatchObject({ apiKeys: 1 });
    expectDeleted(await posthorn.api.delete(`${PEOPLE}/${id}`));
    expectFailure(await browser.api.get(SESSION), 401, 'unauthorized');
    expectNotFound(await posthorn.api.get(`${PEOPLE}/${id}`));
    const left = await posthorn.api.get(`/api/v1/api-keys?createdBy=${id}`);
    expect(dataOf(left)).toMatchObject([{ id: key.id, createdBy: id }]);
    dataOf(await createApiClient(posthorn.baseUrl, key.key).get('/api/v1/me'));
    const [removed] = await readAuditEvents(posthorn.api, { action: 'person.removed' });
    const changes = [
      { field: 'name', before: 'Name of maker', after: null },
      { field: 'apiKeys', before: [key.id], after: null },
    ];
    expect(removed?.changes).toEqual(expect.arrayContaining(changes));
    expect(await collectionsWith(/Name of maker|maker@/)).toEqual(['auditEvents']);
    expect((await enter({ sub: 'maker', claims })).id).not.toBe(id);
  });

  it('leaves no name or address anywhere else, whatever they were invited as and did', async () => {
    const { webhookId, appId } = await posthorn.api.createTarget('http://127.0.0.1:9/');
    const invitation = { role: 'admin', name: 'Guest Ivy', email: 'guest-ivy@example.com' };
    // A repeat finds what the first request made by the key, which is stored for a day.
    const once = { 'idempotency-key': 'the-invitation-of-ivy' };
    const made = await posthorn.api.post('/api/v1/invitations', invitation, once);
    const [, token = ''] = dataOf<{ url: string }>(made, 201).url.split('#');
    const claims = { name: 'Name of Ivy', email: 'ivy@example.com' };
    const { browser, id } = await enter({ sub: 'ivy', claims }, { invitation: token });
    dataOf(await browser.api.post(`/api/v1/webhooks/${webhookId}/hold`, {}));
    const link = { expiresInSeconds: 60, capabilities: ['view'] };
    dataOf(await browser.api.post(`/api/v1/apps/${appId}/portal-links`, link), 201);
    const text = /Guest Ivy|Name of Ivy|ivy@example\.com/;
    expect(await collectionsWith(text)).toContain('people');
    expectDeleted(await posthorn.api.delete(`${PEOPLE}/${id}`));
    expect(await collectionsWith(text)).toEqual(['auditEvents']);
  });
});
