import { describe, expect, test } from '@jest/globals';
import { OAUTH2 } from '../../../../test/support/samples/sample-webhook.ts';
import { createHmac } from 'node:crypto';
import { Webhook as Verifier, WebhookVerificationError } from 'standardwebhooks';
import { openValues } from '../webhook-fields.ts';
import type { AuthMethod, Webhook } from '../webhook.ts';
import { deliveryHeaders, maskedDeliveryHeaders, signerOf } from './delivery-headers.ts';
import { secretFromBytes } from './signature.ts';

const secret = secretFromBytes(Buffer.alloc(32, 7));
const payload = Buffer.from('{"n":12345678901234567890,"x":1e400,"s":"\\u00e9é"}');
const hmac: AuthMethod = { method: 'hmac', hmacHeader: 'X-Service-Signature', hmacSecret: secret };

function webhookWith(
  authMethod: AuthMethod,
  customHeaders: Webhook['customHeaders'] = [],
): Webhook {
  return {
    ...openValues({ url: 'https://example.com/' }),
    id: 'wh_1',
    companyId: 'comp_1',
    projectId: 'proj_1',
    environmentId: 'live',
    secret,
    previousSecret: null,
    tls: null,
    customHeaders,
    authMethod,
    createdAtMs: 1,
    updatedAtMs: 1,
  };
}

function listOf(webhook: Webhook): [string, string][] {
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const parts = { messageId: 'msg_1', timestampSeconds, payload, accessToken: 't-1' };
  const flat = deliveryHeaders(webhook, signerOf(webhook), parts, 'Posthorn/1');
  return flat.flatMap((name, index) => (index % 2 ? [] : [[name, flat[index + 1] ?? '']]));
}

test('the event type of a message is a header, in what people see too, and absent without one', () => {
  const webhook = webhookWith(hmac);
  const parts = { messageId: 'msg_1', timestampSeconds: 1, payload };
  const sent = (eventType: string | null) =>
    deliveryHeaders(webhook, signerOf(webhook), { ...parts, eventType }, 'Posthorn/1').join();
  expect(sent('order.paid')).toContain(',webhook-event-type,order.paid,');
  expect(sent(null)).not.toContain('event-type');
  const shown = { messageId: 'msg_1', signature: null, userAgent: 'Posthorn/1' };
  expect(maskedDeliveryHeaders(webhook, { ...shown, eventType: 'order.paid' })).toContainEqual({
    key: 'webhook-event-type',
    value: 'order.paid',
  });
});

const headersOf = (webhook: Webhook) => Object.fromEntries(listOf(webhook));

describe('the headers of a delivery [security]', () => {
  test.each<[string, AuthMethod]>([
    ['hmac', { ...hmac, hmacSecret: 'brought-by-the-customer' }],
    ['basic', { method: 'basic', username: 'u', password: 'p' }],
    ['api_key', { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' }],
    ['oauth2', OAUTH2],
  ])(
    'of a webhook with %s verify with the Standard Webhooks library and its secret',
    (_name, auth) => {
      const headers = headersOf(webhookWith(auth));
      expect(new Verifier(secret).verify(payload, headers)).toEqual(JSON.parse(payload.toString()));
    },
  );

  test('do not verify for another payload, id, time or secret', () => {
    const headers = headersOf(webhookWith(hmac));
    const verify =
      (changes: object, body: Buffer = payload, key = secret) =>
      () =>
        new Verifier(key).verify(body, { ...headers, ...changes });
    const later = String(Number(headers['webhook-timestamp']) + 1);
    expect(verify({}, Buffer.concat([payload, Buffer.from(' ')]))).toThrow(
      WebhookVerificationError,
    );
    expect(verify({ 'webhook-id': 'msg_2' })).toThrow(WebhookVerificationError);
    expect(verify({ 'webhook-timestamp': later })).toThrow(WebhookVerificationError);
    expect(verify({}, payload, secretFromBytes(Buffer.alloc(32, 8)))).toThrow(
      WebhookVerificationError,
    );
  });

  test('carry the hex HMAC of the raw payload in the header of an hmac webhook', () => {
    const headers = headersOf(webhookWith({ ...hmac, hmacHeader: 'X-Own', hmacSecret: 'shh' }));
    expect(headers['X-Own']).toBe(createHmac('sha256', 'shh').update(payload).digest('hex'));
  });

  test('carry the base64 of user name and password, in UTF-8, for basic', () => {
    const auth: AuthMethod = { method: 'basic', username: 'Zoë', password: 'a:b' };
    const expected = `Basic ${Buffer.from('Zoë:a:b', 'utf8').toString('base64')}`;
    expect(headersOf(webhookWith(auth)).Authorization).toBe(expected);
  });

  test('carry the access token for oauth2, and none is made without it', () => {
    const webhook = webhookWith(OAUTH2);
    expect(headersOf(webhook).Authorization).toBe('Bearer t-1');
    const parts = { messageId: 'msg_1', timestampSeconds: 1, payload };
    expect(() => deliveryHeaders(webhook, signerOf(webhook), parts, 'Posthorn/1')).toThrow('token');
  });

  test('carry the key as it is in its own header for api_key', () => {
    const auth: AuthMethod = { method: 'api_key', apiKey: 'k 1', apiKeyHeader: 'X-Key' };
    expect(headersOf(webhookWith(auth))['X-Key']).toBe('k 1');
  });

  test('name everything once, custom headers included, and nothing more', () => {
    const custom = [
      { key: 'X-Tenant', value: 'a' },
      { key: 'X-Region', value: '' },
    ];
    expect(listOf(webhookWith(hmac, custom)).map(([name]) => name)).toEqual([
      ...['Content-Type', 'User-Agent', 'Accept', 'Accept-Encoding'],
      ...['X-Tenant', 'X-Region', 'X-Service-Signature'],
      ...['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    ]);
  });
});

describe('the headers of Svix [security]', () => {
  const svixOf = (webhook: Webhook) => listOf(webhook).filter(([name]) => name.startsWith('svix-'));
  const signatureHeaders: Webhook['signatureHeaders'] = ['webhook', 'svix'];

  test('are absent by default', () => {
    expect(svixOf(webhookWith(hmac))).toEqual([]);
  });

  test.each([hmac, OAUTH2])('repeat those of Standard Webhooks for %j', (auth) => {
    const webhook = { ...webhookWith(auth), signatureHeaders };
    const headers = headersOf(webhook);
    expect(svixOf(webhook)).toEqual([
      ['svix-id', 'msg_1'],
      ['svix-timestamp', headers['webhook-timestamp']],
      ['svix-signature', headers['webhook-signature']],
    ]);
  });

  test('show people the id alone, which each attempt has in common', () => {
    const parts = { messageId: 'msg_1', signature: null, userAgent: 'Posthorn/1' };
    const shown = maskedDeliveryHeaders({ ...webhookWith(hmac), signatureHeaders }, parts);
    expect(shown.slice(-2)).toEqual([
      { key: 'webhook-id', value: 'msg_1' },
      { key: 'svix-id', value: 'msg_1' },
    ]);
  });
});

describe('the accepted responses [security]', () => {
  const acceptedBy = (webhook: Webhook) =>
    listOf(webhook).filter(([name]) => /^accept/i.test(name));

  test('are of any type and not compressed', () => {
    const headers = [
      ['Accept', '*/*'],
      ['Accept-Encoding', 'identity'],
    ];
    expect(acceptedBy(webhookWith(hmac))).toEqual(headers);
    expect(acceptedBy(webhookWith(hmac, [{ key: 'Accepted', value: 'x' }]))).toEqual([
      ...headers,
      ['Accepted', 'x'],
    ]);
  });

  test('are those that a custom header names, in any case', () => {
    const custom = [{ key: 'accept', value: 'application/json' }];
    expect(acceptedBy(webhookWith(hmac, custom))).toEqual([
      ['Accept-Encoding', 'identity'],
      ['accept', 'application/json'],
    ]);
  });

  test('are not named twice by a webhook that authenticates in such a header', () => {
    const auth: AuthMethod = { method: 'api_key', apiKey: 'k', apiKeyHeader: 'ACCEPT-ENCODING' };
    expect(acceptedBy(webhookWith(auth))).toEqual([
      ['Accept', '*/*'],
      ['ACCEPT-ENCODING', 'k'],
    ]);
  });
});

describe('the signature after a rotation [security]', () => {
  const old = secretFromBytes(Buffer.alloc(32, 8));
  const GRACE_ENDS_MS = 1_700_000_000_000;

  function signaturesAt(ms: number, authMethod: AuthMethod = hmac): string[] {
    const webhook = {
      ...webhookWith(authMethod),
      previousSecret: { secret: old, expiresAtMs: GRACE_ENDS_MS },
    };
    const parts = { messageId: 'msg_1', timestampSeconds: Math.floor(ms / 1_000), payload };
    const flat = deliveryHeaders(webhook, signerOf(webhook), parts, 'Posthorn/1');
    return flat[flat.indexOf('webhook-signature') + 1]?.split(' ') ?? [];
  }

  test('is made with both secrets during the grace, the new one first', () => {
    const timestampSeconds = GRACE_ENDS_MS / 1_000 - 1;
    const sign = (key: string) =>
      createHmac('sha256', Buffer.from(key.slice('whsec_'.length), 'base64'))
        .update(`msg_1.${timestampSeconds}.`)
        .update(payload)
        .digest('base64');
    expect(signaturesAt(GRACE_ENDS_MS - 1)).toEqual([`v1,${sign(secret)}`, `v1,${sign(old)}`]);
  });

  test('is made with the new secret alone from the end of the grace on', () => {
    expect(signaturesAt(GRACE_ENDS_MS)).toHaveLength(1);
    expect(signaturesAt(GRACE_ENDS_MS)[0]).not.toBe(signaturesAt(GRACE_ENDS_MS - 1)[1]);
  });

  test('is accepted by who knows either secret, through the Standard Webhooks library', () => {
    const expiresAtMs = Date.now() + 60_000;
    const headers = headersOf({
      ...webhookWith(hmac),
      previousSecret: { secret: old, expiresAtMs },
    });
    for (const known of [secret, old]) {
      expect(new Verifier(known).verify(payload, headers)).toEqual(JSON.parse(payload.toString()));
    }
    const stranger = new Verifier(secretFromBytes(Buffer.alloc(32, 9)));
    expect(() => stranger.verify(payload, headers)).toThrow(WebhookVerificationError);
  });

  test('makes the HMAC header with the new secret only (docs/contract.md C9.8)', () => {
    const headers = headersOf({
      ...webhookWith(hmac),
      previousSecret: { secret: old, expiresAtMs: Date.now() + 60_000 },
    });
    const expected = createHmac('sha256', secret).update(payload).digest('hex');
    expect(headers['X-Service-Signature']).toBe(expected);
  });
});
