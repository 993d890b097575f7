import { describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS as strict } from '@posthorn/domain/egress/egress-rules.ts';
import type { AuthMethod, Webhook } from '@posthorn/domain/webhook.ts';
import { sampleWebhook } from '../../../../../../test/support/samples/sample-webhook.ts';
import type { ApiError } from '../../../http/api-error.ts';
import { changesOf, updateProblems, updateWebhookBody } from './webhook-body.ts';

const MASK = '********';
const ELSEWHERE = 'https://mine.example.net/';
const TOKENS_ELSEWHERE = 'https://mine.example.net/token';

const basic: AuthMethod = { method: 'basic', username: 'u', password: 'hush' };
const apiKey: AuthMethod = { method: 'api_key', apiKey: 'hush', apiKeyHeader: 'X-Key' };
const hmac: AuthMethod = { method: 'hmac', hmacHeader: 'X-Sig', hmacSecret: 'hush' };
const oauth2: AuthMethod = {
  method: 'oauth2',
  tokenUrl: 'https://login.example.com/token',
  clientId: 'c',
  clientSecret: 'hush',
  scope: null,
  audience: null,
  clientAuthentication: 'basic',
};

const webhookWith = (authMethod: AuthMethod, ...names: string[]): Webhook =>
  sampleWebhook(1, { authMethod, customHeaders: names.map((key) => ({ key, value: 'hush' })) });

/** Returns the paths of what is wrong; [] for an update that is made. */
function refusalsOf(fields: object, webhook: Webhook, seesSecrets = false): string[] {
  const body = updateWebhookBody(strict).parse(fields);
  const found = updateProblems({ ...fields }, webhook, strict, { seesSecrets });
  const paths = found.map(({ path }) => path);
  try {
    changesOf(webhook, body, { seesSecrets });
    expect(paths).toEqual([]);
  } catch (error) {
    expect((error as ApiError).problems.map(({ path }) => path)).toEqual(paths);
  }
  return paths;
}

describe('who sees no secrets', () => {
  test.each<[string, AuthMethod, object, string[]]>([
    ['the password', basic, { url: ELSEWHERE }, ['basicAuthPassword']],
    ['the API key', apiKey, { url: ELSEWHERE }, ['apiKey']],
    ['what tokens are issued for', oauth2, { url: ELSEWHERE }, ['oauth2ClientSecret']],
    ['a client secret', oauth2, { oauth2TokenUrl: TOKENS_ELSEWHERE }, ['oauth2ClientSecret']],
    [
      'what another port may read',
      basic,
      { url: 'https://example.com:8443/hook' },
      ['basicAuthPassword'],
    ],
    ['nothing that only signs', hmac, { url: ELSEWHERE }, []],
    ['what it gives itself', basic, { url: ELSEWHERE, basicAuthPassword: 'own' }, []],
    ['what stays at the server', basic, { url: 'https://example.com/other?a=1' }, []],
    ['nothing of a method that ends', basic, { url: ELSEWHERE, authMethod: 'hmac' }, []],
  ])('cannot send %s of %j to another server with %j', (_what, auth, fields, expected) => {
    const webhook = webhookWith(auth);
    expect(refusalsOf(fields, webhook)).toEqual(expected);
    expect(refusalsOf(fields, webhook, true)).toEqual([]);
  });

  test('cannot send the headers there that it is not shown', () => {
    const webhook = webhookWith(hmac, 'X-Tenant', 'X-Api-Key');
    const headers = (value: string) => [{ key: 'x-api-key', value }];
    expect(refusalsOf({ url: ELSEWHERE }, webhook)).toEqual(['customHeaders']);
    expect(refusalsOf({ url: ELSEWHERE, customHeaders: headers(MASK) }, webhook)).toEqual([
      'customHeaders.0.value',
    ]);
    expect(refusalsOf({ url: ELSEWHERE, customHeaders: headers('own') }, webhook)).toEqual([]);
    expect(refusalsOf({ url: ELSEWHERE, customHeaders: [] }, webhook)).toEqual([]);
    expect(refusalsOf({ url: ELSEWHERE }, webhookWith(hmac, 'X-Tenant'))).toEqual([]);
    expect(
      refusalsOf(
        { oauth2TokenUrl: TOKENS_ELSEWHERE, oauth2ClientSecret: 'own' },
        {
          ...webhook,
          authMethod: oauth2,
        },
      ),
    ).toEqual([]);
  });
});

describe('a mask in a custom header', () => {
  const webhook = webhookWith(hmac, 'X-Tenant', 'X-Api-Key');
  const update = (customHeaders: object[]) =>
    changesOf(webhook, updateWebhookBody(strict).parse({ customHeaders }), { seesSecrets: false });

  test('keeps the value that the header has', () => {
    const asked = [
      { key: 'x-api-key', value: MASK },
      { key: 'X-Tenant', value: 'new' },
    ];
    expect(update(asked)?.customHeaders).toEqual([
      { key: 'x-api-key', value: 'hush' },
      { key: 'X-Tenant', value: 'new' },
    ]);
  });

  test('is refused where there is no such value', () => {
    expect(refusalsOf({ customHeaders: [{ key: 'X-New-Key', value: MASK }] }, webhook)).toEqual([
      'customHeaders.0.value',
    ]);
  });
});
