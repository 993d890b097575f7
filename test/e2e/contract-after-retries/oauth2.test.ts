import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createApiClient } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { ShownWebhook } from '../../support/api/resources.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { startReceiver, type Answer, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

const SECRET = 'hush-client-secret';
const MASK = '********';

const { posthorn, make } = useCompany('contract-after-retries');
let receiver: Receiver;
let tokenServer: Receiver;
/** Tokens that were issued, over all tests. */
let issued = 0;

beforeAll(async () => {
  [receiver, tokenServer] = [await startReceiver(), await startReceiver()];
}, 120_000);

afterAll(async () => {
  await Promise.all([receiver.close(), tokenServer.close()]);
});

beforeEach(() => {
  tokenServer.answerWith(issueToken);
  receiver.answerWith((response) => response.end('ok'));
});

const issueToken: Answer = (response) => {
  issued += 1;
  const token = { access_token: `t-${issued}`, token_type: 'Bearer', expires_in: 3_600 };
  response.end(JSON.stringify(token));
};

/** Credentials that no other test has, so that it starts without a token. */
const credentials = (clientId: string) => ({
  authMethod: 'oauth2',
  oauth2TokenUrl: `${tokenServer.url}/token?tenant=hush-tenant`,
  oauth2ClientId: clientId,
  oauth2ClientSecret: SECRET,
});

const makeWebhook = (clientId: string, fields: object = {}): Promise<ShownWebhook> =>
  make.webhook({ url: receiver.url, ...credentials(clientId), ...fields });

/** Returns the token requests with these credentials, in Authorization or in the body. */
const requestsOf = (clientId: string) =>
  tokenServer.received.filter(({ headers, body }) => {
    const login = Buffer.from((headers.authorization ?? '').slice(6), 'base64').toString();
    return login === `${clientId}:${SECRET}` || body.toString().includes(`client_id=${clientId}&`);
  });

/** Sends a message and returns its delivery once it has this status, with the Authorization of each request. */
async function send(webhookId: string, status = 'delivered') {
  const { id, deliveries } = await make.message({ webhookId });
  const delivery = await make.deliveryOnce(status, String(deliveries[0]?.id));
  return { delivery, sent: receiver.of(id).map(({ headers }) => headers.authorization) };
}

describe('A webhook with OAuth 2.0 client credentials', () => {
  it('gets its deliveries with a token, which messages and webhooks with the same credentials share', async () => {
    const fields = { oauth2Scope: 'orders', oauth2Audience: 'https://api.example.com' };
    const first = await makeWebhook('shared', fields);
    const second = await makeWebhook('shared', fields);
    const webhookIds = [first.id, second.id, first.id, second.id];
    const all = await Promise.all(webhookIds.map((id) => send(id)));
    const [request, ...more] = requestsOf('shared');
    expect(more).toEqual([]);
    expect(all.map(({ sent }) => sent)).toEqual(webhookIds.map(() => [`Bearer t-${issued}`]));
    expect(request).toMatchObject({ method: 'POST', path: '/hook/token?tenant=hush-tenant' });
    expect(Object.fromEntries(new URLSearchParams(request?.body.toString()))).toEqual({
      grant_type: 'client_credentials',
      scope: 'orders',
      audience: 'https://api.example.com',
    });
    const shown = all[0]?.delivery.attempts[0];
    expect(shown).toMatchObject({ outcome: 'success', failureReason: null });
    expect(shown?.headers).toContainEqual({ key: 'Authorization', value: `Bearer ${MASK}` });
  });

  it('sends its credentials in the body when configured', async () => {
    const { id } = await makeWebhook('in-body', { oauth2ClientAuthentication: 'post' });
    await send(id);
    const [request] = requestsOf('in-body');
    expect(request?.headers.authorization).toBeUndefined();
    expect(request?.body.toString()).toContain(`client_secret=${SECRET}`);
  });

  it('gets the next attempt with another token after a 401, and none in between', async () => {
    const { id } = await makeWebhook('refused');
    receiver.answerWith((response, _received, nth) => {
      response.writeHead(nth === 1 ? 401 : 200).end();
    });
    const { delivery, sent } = await send(id);
    expect(delivery.attempts).toMatchObject([{ outcome: 'http_4xx' }, { outcome: 'success' }]);
    expect(sent).toEqual([`Bearer t-${issued - 1}`, `Bearer t-${issued}`]);
    expect(requestsOf('refused')).toHaveLength(2);
  });

  it('gets nothing while its token server is down, and the retry once it is back', async () => {
    const { id } = await makeWebhook('down');
    tokenServer.answerWith((response) => {
      tokenServer.answerWith(issueToken);
      // The beginning of an answer: without one the request would be repeated on a new connection.
      response.socket?.end('HTTP/1.1 ');
    });
    const { delivery, sent } = await send(id);
    expect(sent).toEqual([`Bearer t-${issued}`]);
    const failed = {
      outcome: 'token_failed',
      failureReason: 'no answer from the token server: connect_error',
      statusCode: null,
      response: null,
    };
    expect(delivery.attempts).toMatchObject([failed, { outcome: 'success', failureReason: null }]);
  });

  it('shows why its token server refuses, and is delivered after its secret is put right', async () => {
    const { id } = await makeWebhook('wrong', { oauth2ClientSecret: 'hush-wrong' });
    tokenServer.answerWith((response) => {
      response.writeHead(401).end('{"error": "invalid_client", "error_description": "hush"}');
    });
    const { delivery, sent } = await send(id, 'exhausted');
    const failureReason = 'the token server answered 401: invalid_client';
    const failed = { outcome: 'token_failed', failureReason };
    expect([sent, delivery.attempts]).toMatchObject([[], [failed, failed]]);
    const health = await posthorn.api.get(`/api/v1/webhooks/${id}/health`);
    expect(dataOf(health)).toMatchObject({ circuit: 'closed', pausedUntil: null });
    tokenServer.answerWith(issueToken);
    dataOf(await posthorn.api.put(`/webhooks/${id}`, { oauth2ClientSecret: SECRET }));
    dataOf(await posthorn.api.post(`/api/v1/deliveries/${delivery.id}/resend`, {}));
    await make.deliveryOnce('delivered', delivery.id);
    expect(requestsOf('wrong')).toHaveLength(1);
  });
});

describe('The credentials of OAuth 2.0 [security]', () => {
  it('are shown and changed like those of other methods, and their secret is masked for readers', async () => {
    const { id, authMethod } = await makeWebhook('shown', { oauth2Scope: 'a b' });
    const shown = {
      method: 'oauth2',
      tokenUrl: `${tokenServer.url}/token?tenant=hush-tenant`,
      clientId: 'shown',
      clientSecret: SECRET,
      scope: 'a b',
      audience: null,
      clientAuthentication: 'basic',
    };
    expect(authMethod).toEqual(shown);
    const changes = { oauth2Scope: null, oauth2_audience: 'x' };
    dataOf(await posthorn.api.put(`/webhooks/${id}`, changes));
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Reader', scopes: ['read'] });
    const { key } = dataOf<{ key: string }>(made, 201);
    const read = await createApiClient(posthorn.baseUrl, key).get(`/webhooks/${id}`);
    expect(dataOf<ShownWebhook>(read).authMethod).toEqual({
      ...shown,
      clientSecret: MASK,
      scope: null,
      audience: 'x',
    });
  });

  it('are in the audit log without the secret', async () => {
    const { id } = await makeWebhook('audited');
    const events = await eventually('the audit event', async () => {
      const found = await readAuditEvents(posthorn.api);
      return found.some(({ target }) => target.id === id) ? found : null;
    });
    expect(JSON.stringify(events)).not.toContain('hush');
    const changes = events.find(({ target }) => target.id === id)?.changes;
    expect(changes).toEqual(
      expect.arrayContaining([
        { field: 'oauth2TokenUrl', before: null, after: `${tokenServer.url}/token?tenant=${MASK}` },
        { field: 'oauth2ClientId', before: null, after: 'audited' },
        { field: 'oauth2ClientSecret', before: null, after: MASK },
      ]),
    );
  });
});
