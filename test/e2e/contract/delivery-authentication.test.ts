import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook as Verifier, WebhookVerificationError } from 'standardwebhooks';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Received, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources, type ShownWebhook } from '../../support/api/resources.ts';

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

/** Sends a message to the webhook and returns the request that its endpoint gets. */
async function deliver({ id: webhookId }: ShownWebhook): Promise<Received> {
  const { id } = await make.message({ webhookId, payload: { order: 17, name: 'é' } });
  return eventually('the delivery', () => receiver.of(id)[0]);
}

const verify = (secret: string, { body, headers }: Received): unknown =>
  new Verifier(secret).verify(body.toString(), headers as Record<string, string>);

const hmac = (secret: string, { body }: Received): string =>
  createHmac('sha256', secret).update(body).digest('hex');

describe('Each delivery', () => {
  it('is a POST of the payload as JSON to the path and query of the url, with the user agent of Posthorn', async () => {
    const webhook = await make.webhook({ url: `${receiver.url}/a%20b?c=d&e` });
    const { method, path, headers, body } = await deliver(webhook);
    expect([method, path, body.toString()]).toEqual([
      ...['POST', '/hook/a%20b?c=d&e', '{"order":17,"name":"é"}'],
    ]);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(body.length),
      'user-agent': expect.stringMatching(/^Posthorn\/\d+\.\d+\.\d+/),
    });
    expect(headers.cookie).toBeUndefined();
  });

  it('carries the custom headers unchanged', async () => {
    const customHeaders = [
      { key: 'X-Tenant', value: 't-1' },
      { key: 'X-Empty', value: '' },
      { key: 'X-Latin', value: 'né' },
    ];
    const { headers } = await deliver(await make.webhook({ url: receiver.url, customHeaders }));
    expect(headers).toMatchObject({ 'x-tenant': 't-1', 'x-empty': '', 'x-latin': 'né' });
  });

  it('does not follow a redirect: 302 is a failed attempt', async () => {
    receiver.answerWith((response) => {
      response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end();
    });
    const webhook = await make.webhook({ url: receiver.url });
    const { deliveries } = await make.message({ webhookId: webhook.id });
    const id = String(deliveries[0]?.id);
    const { attempts } = await eventually('the attempt', async () => {
      const shown = await make.delivery(id);
      return shown.attemptCount === 1 ? shown : null;
    });
    expect(attempts).toMatchObject([{ outcome: 'http_3xx', statusCode: 302 }]);
    expect(receiver.received.map(({ path }) => path)).not.toContain('/hook/elsewhere');
    receiver.answerWith((response) => response.writeHead(200).end('ok'));
  });
});

describe('Authenticating deliveries', () => {
  const METHODS: [string, object, (webhook: ShownWebhook, got: Received) => void][] = [
    [
      'hmac',
      {},
      ({ secret }, got) => {
        expect(got.headers['x-service-signature']).toBe(hmac(secret, got));
      },
    ],
    [
      'hmac with hmacHeader and hmacSecret',
      { authMethod: 'hmac', hmacHeader: 'X-Own', hmacSecret: 'clé' },
      (_webhook, got) => {
        expect(got.headers['x-own']).toBe(hmac('clé', got));
        expect(got.headers['x-service-signature']).toBeUndefined();
      },
    ],
    [
      'basic',
      { authMethod: 'basic', basicAuthUsername: 'Zoë', basicAuthPassword: 'p:w' },
      (_webhook, { headers }) => {
        const expected = Buffer.from('Zoë:p:w').toString('base64');
        expect(headers.authorization).toBe(`Basic ${expected}`);
        expect(headers['x-service-signature']).toBeUndefined();
      },
    ],
    [
      'apiKey',
      { authMethod: 'apiKey', apiKey: 'k 1', apiKeyHeader: 'X-Their-Key' },
      (_webhook, { headers }) => {
        expect(headers['x-their-key']).toBe('k 1');
        expect(headers['x-service-signature']).toBeUndefined();
      },
    ],
    [
      'apiKey in Authorization',
      { authMethod: 'apiKey', apiKey: 'Bearer k', apiKeyHeader: 'Authorization' },
      (_webhook, { headers }) => {
        expect(headers.authorization).toBe('Bearer k');
      },
    ],
  ];

  it.each(METHODS)(
    'by %s sends the credentials, and the signature verifies as a Standard Webhook',
    async (_, auth, check) => {
      const webhook = await make.webhook({ url: receiver.url, ...auth });
      const got = await deliver(webhook);
      check(webhook, got);
      expect(verify(webhook.secret, got)).toEqual({ order: 17, name: 'é' });
      expect(got.headers['webhook-id']).toMatch(/^msg_/);
      const other = await make.webhook({ url: receiver.url });
      expect(() => verify(other.secret, got)).toThrow(WebhookVerificationError);
      const changed = { ...got, body: Buffer.from(`${got.body.toString()} `) };
      expect(() => verify(webhook.secret, changed)).toThrow(WebhookVerificationError);
    },
  );

  it('uses a changed method from the next message on', async () => {
    const webhook = await make.webhook({ url: receiver.url });
    await deliver(webhook);
    dataOf(await posthorn.api.put(`/webhooks/${webhook.id}`, { hmacSecret: 'new' }));
    const got = await deliver(webhook);
    expect(got.headers['x-service-signature']).toBe(hmac('new', got));
  });
});
