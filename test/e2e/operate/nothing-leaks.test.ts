import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createResources } from '../../support/api/resources.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { selfSigned } from '../../support/receivers/self-signed.ts';

/** Each stands in one place only, so that a hit says where it comes from. */
const MARKERS = {
  hmacSecret: 'hush-hmac-secret-of-the-webhook',
  basicAuthPassword: 'hush-basic-password',
  apiKey: 'hush-key-of-the-endpoint',
  clientSecret: 'hush-client-secret',
  accessToken: 'hush-access-token',
  header: 'hush-custom-header',
  payload: 'hush-payload',
  answer: 'hush-answer-of-the-endpoint',
  query: 'hush-query-of-the-url',
  wrongKey: 'phk_hush-wrong-key',
};
const clientCertificate = selfSigned('client.example.com');
const [, keyText = ''] = clientCertificate.key.split('\n');
const methodsWith = (tokenServer: Receiver): object[] => [
  { hmacSecret: MARKERS.hmacSecret },
  {
    authMethod: 'basic',
    basicAuthUsername: 'user',
    basicAuthPassword: MARKERS.basicAuthPassword,
  },
  { authMethod: 'apiKey', apiKey: MARKERS.apiKey, apiKeyHeader: 'X-Their-Key' },
  {
    authMethod: 'oauth2',
    oauth2TokenUrl: `${tokenServer.url}?token=${MARKERS.query}`,
    oauth2ClientId: 'posthorn',
    oauth2ClientSecret: MARKERS.clientSecret,
  },
];
const SERVICES = ['gateway', 'dispatcher', 'retry'] as const;

describe('Logs at the most talkative level, and metrics [security]', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let tokenServer: Receiver;
  const secrets: string[] = [];

  beforeAll(async () => {
    posthorn = await startPosthorn({ LOG_LEVEL: 'trace', RETRY_DELAYS: '200ms' });
    [receiver, tokenServer] = [await startReceiver(), await startReceiver()];
    tokenServer.answerWith((response) => {
      response.end(JSON.stringify({ access_token: MARKERS.accessToken, token_type: 'Bearer' }));
    });
  }, 120_000);

  afterAll(async () => {
    await Promise.all([receiver.close(), tokenServer.close()]);
    await posthorn.stop();
  }, 60_000);

  async function createWebhook(method: object): Promise<string> {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const customHeaders = [{ key: 'X-Tenant', value: MARKERS.header }];
    const tls = { certificate: clientCertificate.cert, key: clientCertificate.key };
    const url = `${receiver.url}?token=${MARKERS.query}`;
    const body = { url, appId, customHeaders, tls, ...method };
    const created = await posthorn.api.post('/webhooks', body);
    const { id, secret } = created.body.data as { id: string; secret: string };
    secrets.push(secret);
    return id;
  }

  it('show no secret, key, payload or answer after deliveries, failures, retries and refusals', async () => {
    const { deliveryOnce } = createResources(posthorn.api);
    for (const method of methodsWith(tokenServer)) {
      const webhookId = await createWebhook(method);
      receiver.answerWith((response, _received, nth) => {
        response.writeHead(nth === 1 ? 500 : 200).end(MARKERS.answer);
      });
      const { deliveryId } = await posthorn.api.send({ webhookId }, { marker: MARKERS.payload });
      await deliveryOnce('delivered', deliveryId);
      await posthorn.api.post(`/api/v1/webhooks/${webhookId}/rotate-secret`, {});
      await posthorn.api.post('/webhooks', { url: 7, hmacSecret: MARKERS.hmacSecret, ...method });
    }
    await fetch(`${posthorn.baseUrl}/webhooks`, { headers: { 'x-api-key': MARKERS.wrongKey } });

    const pages = SERVICES.map(async (name) =>
      (await fetch(`${posthorn[name].opsUrl}/metrics`)).text(),
    );
    const shown =
      SERVICES.map((name) => posthorn[name].output()).join('') +
      (await Promise.all(pages)).join('');
    expect(shown).toContain('"outcome":"success"');
    const [, encryptionKey = ''] = posthorn.env.ENCRYPTION_KEYS?.split(':') ?? [];
    const login = `user:${MARKERS.basicAuthPassword}`;
    const keys = [keyText, posthorn.apiKey, encryptionKey];
    const forbidden = [...Object.values(MARKERS), login, ...secrets, ...keys];
    for (const secret of forbidden) {
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain(Buffer.from(secret).toString('base64').slice(0, -4));
    }
  });
});
