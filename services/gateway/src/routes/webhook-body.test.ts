import { describe, expect, test } from '@jest/globals';
import { STRICT_EGRESS as strict } from '@posthorn/domain/egress.ts';
import type { AuthMethod, Webhook } from '@posthorn/domain/webhook.ts';
import { sampleWebhook } from '../../../../test/support/samples/sample-webhook.ts';
import type { ApiError } from '../api-error.ts';
import { changesOf, createWebhookBody, updateProblems, updateWebhookBody } from './webhook-body.ts';

const schema = createWebhookBody(strict);
const base = { url: 'https://example.com/hook', appId: 'app_1' };

/** Returns the paths of the problems, sorted. */
function problemsOf(fields: object, policy = strict): string[] {
  const { error } = createWebhookBody(policy).safeParse(fields);
  return (error?.issues ?? []).map(({ path }) => path.join('.')).sort();
}

const messagesOf = (fields: object) =>
  schema.safeParse(fields).error?.issues.map(({ message }) => message);

describe('the owner of a webhook', () => {
  const { url } = base;
  test.each<[object, string[]]>([
    [{ appId: 'app_1' }, []],
    [{ projectId: 'proj_1', environmentId: 'live-1_A' }, []],
    [{}, ['appId']],
    [{ projectId: 'proj_1' }, ['environmentId']],
    [{ environmentId: 'live' }, ['projectId']],
    [{ appId: 'app_1', projectId: 'proj_1' }, ['projectId']],
    [{ appId: 'app_1', environmentId: 'live' }, ['environmentId']],
    [{ appId: 'app_1', projectId: 'p', environmentId: 'live' }, ['environmentId', 'projectId']],
    [{ projectId: 'proj_1', environmentId: 'a b' }, ['environmentId']],
    [{ projectId: 'proj_1', environmentId: 'x'.repeat(65) }, ['environmentId']],
    [{ projectId: 'proj_1', environmentId: '' }, ['environmentId']],
  ])('given as %j has these problems: %j', (owner, problems) => {
    expect(problemsOf({ url, ...owner })).toEqual(problems);
  });
});

describe('the authentication of a webhook', () => {
  const basic = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
  const apiKey = { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' };
  const oauth2 = {
    authMethod: 'oauth2',
    oauth2TokenUrl: 'https://login.example.com/token',
    oauth2ClientId: 'id',
    oauth2ClientSecret: 'secret',
  };
  test.each<[object, string[]]>([
    [{}, []],
    [{ authMethod: 'hmac', hmacHeader: 'X-Sig', hmacSecret: 's' }, []],
    [basic, []],
    [apiKey, []],
    [{ ...apiKey, apiKeyHeader: 'Authorization' }, []],
    [{ authMethod: 'basic' }, ['basicAuthPassword', 'basicAuthUsername']],
    [{ authMethod: 'apiKey', apiKey: 'k' }, ['apiKeyHeader']],
    [{ authMethod: 'api_key' }, ['authMethod']],
    [{ basicAuthUsername: 'u', apiKey: 'k' }, ['apiKey', 'basicAuthUsername']],
    [{ ...basic, hmacSecret: 's' }, ['hmacSecret']],
    [
      { ...apiKey, hmacHeader: 'X-Sig', basicAuthPassword: 'p' },
      ['basicAuthPassword', 'hmacHeader'],
    ],
    [{ ...basic, basicAuthUsername: 'a:b' }, ['basicAuthUsername']],
    [{ ...apiKey, apiKey: 'a\r\nb' }, ['apiKey']],
    [{ ...apiKey, apiKey: '' }, ['apiKey']],
    [{ ...apiKey, apiKeyHeader: 'content-type' }, ['apiKeyHeader']],
    [{ hmacHeader: 'webhook-signature' }, ['hmacHeader']],
    [{ hmacHeader: 'Authorization' }, ['hmacHeader']],
    [{ hmacHeader: 'X Sig' }, ['hmacHeader']],
    // Credentials that were copied with something around them, and could not arrive as they are.
    [{ ...basic, basicAuthPassword: 'secret\n' }, ['basicAuthPassword']],
    [{ ...basic, basicAuthPassword: ' se cret ' }, []],
    [{ ...basic, basicAuthUsername: '\x07u' }, ['basicAuthUsername']],
    [{ ...apiKey, apiKey: 'k ' }, ['apiKey']],
    [{ ...apiKey, apiKey: ' k' }, ['apiKey']],
    [{ ...oauth2, oauth2ClientId: 'id\r\n' }, ['oauth2ClientId']],
    [{ ...oauth2, oauth2ClientSecret: 'secret\n' }, ['oauth2ClientSecret']],
    [{ ...oauth2, oauth2Audience: '\tapi' }, ['oauth2Audience']],
    [{ authMethod: 'oauth2' }, ['oauth2ClientId', 'oauth2ClientSecret', 'oauth2TokenUrl']],
    [{ oauth2ClientId: 'c', oauth2Scope: null }, ['oauth2ClientId']],
    [{ ...oauth2, oauth2TokenUrl: 'https://169.254.169.254/token' }, ['oauth2TokenUrl']],
    [{ ...oauth2, oauth2TokenUrl: 'https://example.com:6379/' }, ['oauth2TokenUrl']],
    [{ ...oauth2, oauth2TokenUrl: 'https://u:p@example.com/' }, ['oauth2TokenUrl']],
    [{ ...oauth2, oauth2TokenUrl: 'ftp://example.com/' }, ['oauth2TokenUrl']],
    [{ ...oauth2, oauth2Scope: 'a  b' }, ['oauth2Scope']],
    [{ ...oauth2, oauth2ClientAuthentication: 'jwt' }, ['oauth2ClientAuthentication']],
    [{ hmacSecret: 'any\ntext\n' }, []],
    [{ signatureAlgorithm: 'ed25519' }, []],
    [{ signatureAlgorithm: 'hmac-sha256', hmacHeader: 'X-Sig', hmacSecret: 's' }, []],
    [{ signatureAlgorithm: 'ES256' }, ['signatureAlgorithm']],
    [{ ...basic, signatureAlgorithm: 'hmac-sha256' }, ['signatureAlgorithm']],
    [
      { signatureAlgorithm: 'ed25519', hmacHeader: 'X-Sig', hmacSecret: 's' },
      ['hmacHeader', 'hmacSecret'],
    ],
  ])('given as %j has these problems: %j', (auth, problems) => {
    expect(problemsOf({ ...base, ...auth })).toEqual(problems);
  });
});

describe('custom headers', () => {
  const header = (key: string, value = 'v') => ({ key, value });
  test.each<[string, object, string[]]>([
    ['the default signature header', {}, ['x-service-signature']],
    ['a signature header of its own', { hmacHeader: 'X-Sig' }, ['x-sig']],
    [
      'authorization of oauth2',
      {
        authMethod: 'oauth2',
        oauth2TokenUrl: 'https://login.example.com/token',
        oauth2ClientId: 'c',
        oauth2ClientSecret: 's',
      },
      ['authorization'],
    ],
    ['the key header', { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' }, ['X-KEY']],
    [
      'authorization of basic',
      { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' },
      ['Authorization'],
    ],
  ])('may not replace %s', (_what, auth, [key = '']) => {
    const customHeaders = [header('X-Fine'), header(key)];
    expect(problemsOf({ ...base, ...auth, customHeaders })).toEqual(['customHeaders.1.key']);
  });

  test('may be authorization if the method does not set it', () => {
    expect(problemsOf({ ...base, customHeaders: [header('Authorization')] })).toEqual([]);
  });

  test('are at most 20, each with an allowed name, a printable value and no other field', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) => header(`X-${index}`));
    expect(problemsOf({ ...base, customHeaders: many(20) })).toEqual([]);
    expect(problemsOf({ ...base, customHeaders: many(21) })).toEqual(['customHeaders']);
    const wrong = [header('Host'), header('X-A', 'a\nb'), { ...header('X-B'), note: 'x' }];
    const spaced = [header('X-C', 'secret '), header('X-D', ' secret')];
    expect(problemsOf({ ...base, customHeaders: [...wrong, ...spaced] })).toEqual([
      ...['customHeaders.0.key', 'customHeaders.1.value', 'customHeaders.2'],
      ...['customHeaders.3.value', 'customHeaders.4.value'],
    ]);
  });
});

describe('the URL of a webhook', () => {
  test.each([
    ['/hook', 'must be an absolute URL'],
    ['javascript:alert(1)', 'must be http or https'],
    ['http://example.com/', 'must be https'],
    ['https://u@example.com/', 'must not contain a user or password'],
    ['https://:p@example.com/', 'must not contain a user or password'],
    ['https://example.com/#a', 'must not contain a fragment'],
    ['https://example.com:6379/', 'names a port that deliveries may not go to'],
    ['https://localhost/', 'names a host that deliveries may not go to'],
    ['https://0x7f.1/', 'names a host that deliveries may not go to'],
    ['https://169.254.169.254/latest', 'names a host that deliveries may not go to'],
    [`https://example.com/${'x'.repeat(2_048)}`, 'must have at most 2048 characters'],
  ])('%s is refused: %s', (url, message) => {
    expect(messagesOf({ ...base, url })).toEqual([message]);
  });

  test('is stored as it is sent', () => {
    const { url } = schema.parse({
      ...base,
      url: 'HTTPS://Exämple.com:443/a/../b|c?q= 1|{2}&r=5%',
    });
    expect(url).toBe('https://xn--exmple-cua.com/b%7Cc?q=%201%7C%7B2%7D&r=5%25');
  });

  test('has at most 2,048 characters once it is encoded', () => {
    const fits = `https://example.com/?${'|'.repeat(675)}`;
    expect(problemsOf({ ...base, url: fits })).toEqual([]);
    expect(problemsOf({ ...base, url: `${fits}||` })).toEqual(['url']);
  });

  test('may be http and loopback if the installation allows it', () => {
    const open = { ...strict, allowHttp: true, allowLoopback: true };
    expect(problemsOf({ ...base, url: 'http://127.0.0.1:8080/' }, open)).toEqual([]);
  });

  test('is reported together with the other problems', () => {
    expect(problemsOf({ url: 'https://localhost/', appId: 'app_1', name: 'x' })).toEqual([
      'name',
      'url',
    ]);
  });
});

test('all problems of a body are reported at once', () => {
  expect(problemsOf({})).toEqual(['appId', 'url']);
  expect(problemsOf({ url: base.url, name: 7, authMethod: 'basic' })).toEqual([
    ...['appId', 'basicAuthPassword', 'basicAuthUsername', 'name'],
  ]);
});

describe('an update', () => {
  const update = updateWebhookBody(strict);
  const seen = sampleWebhook(1, {
    secret: 'whsec_x',
    authMethod: { method: 'basic', username: 'u', password: 'p' },
    customHeaders: [{ key: 'X-Mine', value: '1' }],
  });
  const changed = (fields: object, webhook = seen) =>
    changesOf(webhook, update.parse(fields), { seesSecrets: true });

  test('without fields changes nothing', () => {
    expect(changed({})).toBeNull();
  });

  test('never gives a webhook another owner', () => {
    const { error } = update.strict().safeParse({ appId: 'app_2', projectId: 'proj_2' });
    expect(error?.issues).toMatchObject([{ keys: ['appId', 'projectId'] }]);
  });

  test('keeps the credentials that it leaves out when the method stays the same', () => {
    const authMethod = { method: 'basic', username: 'u', password: 'new' };
    expect(changed({ basicAuthPassword: 'new' })).toEqual({ authMethod });
    expect(changed({ disabled: true })).toMatchObject({
      disabled: true,
      authMethod: seen.authMethod,
    });
  });

  test('an update to another method requires all of its fields and refuses those of the old one', () => {
    expect(changed({ authMethod: 'hmac' })).toEqual({
      authMethod: { method: 'hmac', hmacHeader: 'X-Service-Signature', hmacSecret: 'whsec_x' },
    });
    expect(() => changed({ authMethod: 'apiKey', apiKey: 'k' })).toThrow(
      'apiKeyHeader: is required for apiKey',
    );
    expect(() => changed({ authMethod: 'hmac', basicAuthPassword: 'p' })).toThrow(
      'basicAuthPassword: belongs to authMethod basic',
    );
  });

  test('misses no field that is given and wrong by itself', () => {
    const pathsOf = (fields: Record<string, unknown>): string[] =>
      updateProblems(fields, seen, strict, { seesSecrets: false }).map(({ path }) => path);
    const toKey = { authMethod: 'apiKey', apiKey: 'k' };
    expect(pathsOf(toKey)).toEqual(['apiKeyHeader']);
    expect(pathsOf({ ...toKey, apiKeyHeader: 'Host' })).toEqual([]);
    const moved = { url: 'https://mine.example.net/' };
    expect(pathsOf(moved)).toEqual(['basicAuthPassword']);
    expect(pathsOf({ ...moved, basicAuthPassword: '' })).toEqual([]);
  });

  test('chooses the algorithm of hmac, and keeps the secret for the way back', () => {
    const hmac = { method: 'hmac' as const, hmacHeader: 'X-Sig', hmacSecret: 's' };
    const plain = sampleWebhook(1, { authMethod: hmac });
    const asymmetric = { ...hmac, signatureAlgorithm: 'ed25519' as const };
    const signed = sampleWebhook(1, { authMethod: asymmetric });
    expect(changed({ signatureAlgorithm: 'ed25519' }, plain)?.authMethod).toEqual(asymmetric);
    expect(changed({ name: 'Other' }, signed)?.authMethod).toEqual(asymmetric);
    expect(changed({ authMethod: 'hmac' }, signed)?.authMethod).toEqual(asymmetric);
    expect(changed({ signatureAlgorithm: 'hmac-sha256' }, signed)?.authMethod).toEqual(hmac);
    expect(changed({ signatureAlgorithm: 'hmac-sha256', hmacSecret: 'n' }, signed)).toEqual({
      authMethod: { ...hmac, hmacSecret: 'n' },
    });
    expect(() => changed({ hmacSecret: 'n' }, signed)).toThrow(
      'hmacSecret: belongs to signatureAlgorithm hmac-sha256',
    );
  });

  test('is refused when the method and a custom header would have the same name', () => {
    expect(() => changed({ authMethod: 'hmac', hmacHeader: 'x-mine' })).toThrow('customHeaders: ');
    expect(() => changed({ customHeaders: [{ key: 'authorization', value: '1' }] })).toThrow(
      'customHeaders.0.key: is the header of the authentication method',
    );
  });
});

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

describe('null in an update', () => {
  const changes = (body: object, webhook: Webhook) =>
    changesOf(webhook, updateWebhookBody(strict).parse(body), { seesSecrets: true });

  test('sets the fields of a webhook that was created without them', () => {
    const webhook = webhookWith(hmac, 'X-Tenant');
    const taken = { customHeaders: null, eventTypes: null, disabled: null, metadata: null };
    expect(changes({ ...taken, uid: null, hmacSecret: null }, webhook)).toEqual({
      customHeaders: [],
      eventTypes: [],
      disabled: false,
      disabledReason: null,
      metadata: null,
      uid: null,
      authMethod: { ...hmac, hmacSecret: webhook.secret },
    });
  });

  test.each<[object, AuthMethod, string[]]>([
    [{ basicAuthPassword: null }, basic, ['basicAuthPassword']],
    [{ basicAuthPassword: null }, hmac, []],
    [{ authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: null }, basic, ['apiKeyHeader']],
    [{ authMethod: null, basicAuthPassword: null }, basic, []],
    [{ authMethod: null, basicAuthPassword: 'p' }, basic, ['basicAuthPassword']],
  ])('as %j of %j has these problems: %j', (fields, auth, problems) => {
    expect(refusalsOf(fields, webhookWith(auth), true)).toEqual(problems);
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
