import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import { createResources, type ShownWebhook } from '../../support/api/resources.ts';
import { createSessionClient, makePortalLink, openLink } from '../../support/api/session-client.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

const SECRET = 'only-the-owner-knows';
const MASK = '********';

let posthorn: OwnCompany;
let receiver: Receiver;
let visitor: ApiClient;
let appId: string;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  ({ id: appId } = await createResources(posthorn.api).app());
  const link = await makePortalLink(posthorn.api, appId, { capabilities: ['manage'] });
  const cookie = await openLink(posthorn.baseUrl, link);
  visitor = createSessionClient(posthorn.baseUrl, cookie, 'portal');
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

async function createWebhook(fields: object): Promise<string> {
  const body = { appId, url: `${receiver.url}/secrets`, ...fields };
  return dataOf<ShownWebhook>(await posthorn.api.post('/webhooks', body), 201).id;
}

const storedOf = async (id: string): Promise<string> =>
  JSON.stringify(dataOf(await posthorn.api.get(`/webhooks/${id}`)));

describe('A visitor who may change webhooks and not see secrets', () => {
  it.each([
    [
      'basicAuthPassword',
      { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: SECRET },
    ],
    ['apiKey', { authMethod: 'apiKey', apiKey: SECRET, apiKeyHeader: 'X-Key' }],
    ['customHeaders', { customHeaders: [{ key: 'X-Auth', value: SECRET }] }],
  ])('cannot have %s sent to a server of their own', async (path, fields) => {
    const id = await createWebhook(fields);
    const url = `${receiver.url.replace('127.0.0.1', 'localhost')}/mine`;
    expectInvalid(await visitor.put(`/webhooks/${id}`, { url }), path);
    expect(await storedOf(id)).not.toContain('/mine');
    dataOf(await visitor.put(`/webhooks/${id}`, { url: `${receiver.url}/other` }));
  });

  it('cannot have a client secret sent to a token server of their own', async () => {
    const oauth2TokenUrl = 'https://login.example.com/token';
    const client = { oauth2TokenUrl, oauth2ClientId: 'c', oauth2ClientSecret: SECRET };
    const id = await createWebhook({ authMethod: 'oauth2', ...client });
    const path = `/webhooks/${id}`;
    const elsewhere = { oauth2TokenUrl: 'https://mine.example.net/token' };
    expectInvalid(await visitor.put(path, elsewhere), 'oauth2ClientSecret');
    dataOf(await visitor.put(path, { ...elsewhere, oauth2ClientSecret: 'own' }));
    expect(await storedOf(id)).not.toContain(SECRET);
  });

  it('saves what it was shown without changing what it was not', async () => {
    const id = await createWebhook({
      customHeaders: [
        { key: 'X-Auth', value: SECRET },
        { key: 'X-Tenant', value: '1' },
      ],
    });
    const shown = dataOf<{ customHeaders: object[] }>(await visitor.get(`/webhooks/${id}`));
    expect(shown.customHeaders).toEqual([
      { key: 'X-Auth', value: MASK },
      { key: 'X-Tenant', value: '1' },
    ]);
    const { customHeaders } = shown;
    dataOf(await visitor.put(`/webhooks/${id}`, { customHeaders, name: 'Saved' }));
    const stored = await storedOf(id);
    expect(stored).toContain(SECRET);
    expect(stored).not.toContain(MASK);
    const renamed = [{ key: 'X-Token', value: MASK }];
    expectInvalid(
      await visitor.put(`/webhooks/${id}`, { customHeaders: renamed }),
      'customHeaders.0.value',
    );
  });
});
