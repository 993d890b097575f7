import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import {
  type ApiAnswer,
  type ApiClient,
  createApiClient,
} from '../../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectDeleted,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import {
  createResources,
  type Resources,
  type ShownWebhook,
  withoutAuth,
} from '../../../support/api/resources.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';

describe('Webhooks', () => {
  const URL = 'https://example.com/hook';
  const UNKNOWN = `wh_${'0'.repeat(26)}`;
  const BASIC = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
  const API_KEY = { authMethod: 'apiKey', apiKey: 'k-1', apiKeyHeader: 'X-Key' };

  let posthorn: OwnCompany;
  let make: Resources;
  let projectId: string;
  let appId: string;

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    make = createResources(posthorn.api);
    ({ id: projectId } = await make.project());
    ({ id: appId } = await make.app({ projectId }));
  }, 120_000);

  afterAll(() => posthorn.stop(), 60_000);

  const get = async (id: string): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.get(`/webhooks/${id}`));

  const put = async (id: string, changes: object): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.put(`/webhooks/${id}`, changes));

  describe('Webhooks · POST /webhooks', () => {
    it('returns every field, with defaults for absent ones', async () => {
      const made = await make.webhook({ url: URL, appId });
      expect(made).toEqual({
        id: anId('wh'),
        name: 'example.com',
        url: URL,
        customHeaders: [],
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        headers: [{ key: 'Content-Type', value: 'application/json' }],
        authMethod: {
          method: 'hmac',
          hmacHeader: 'X-Service-Signature',
          hmacSecret: made.secret,
        },
        eventTypes: [],
        disabled: false,
        rateLimitPerSecond: null,
        timeoutSeconds: null,
        createdAt: aTime,
        updatedAt: made.createdAt,
      });
    });

    it('returns fields in camelCase, also after a request in snake_case', async () => {
      const custom = [{ key: 'X-Tenant', value: 't-1' }];
      const made = await make.webhook({
        url: URL,
        app_id: appId,
        appId,
        name: 'Orders',
        custom_headers: custom,
        auth_method: 'apiKey',
        api_key: 'k-1',
        api_key_header: 'X-Key',
        event_types: ['order.paid'],
        rate_limit_per_second: 5,
      });
      expect(made).toMatchObject({
        name: 'Orders',
        customHeaders: custom,
        eventTypes: ['order.paid'],
        rateLimitPerSecond: 5,
        disabled: false,
        authMethod: { method: 'api_key', apiKey: 'k-1', apiKeyHeader: 'X-Key' },
      });
    });

    it('creates each webhook with its own secret [security]', async () => {
      const [one, two] = [await make.webhook({ url: URL }), await make.webhook({ url: URL })];
      expect(one.secret).not.toBe(two.secret);
    });

    it.each([
      ['http://127.0.0.1:8080/a', '127.0.0.1:8080'],
      ['https://example.com/a', 'example.com'],
      [`https://${'a'.repeat(60)}.${'b'.repeat(60)}.com/`, `${'a'.repeat(60)}.${'b'.repeat(39)}`],
    ])('names the webhook of %s %s when no name is given', async (url, name) => {
      expect(await make.webhook({ url, appId })).toMatchObject({ name });
    });

    it('returns 404 for an unknown app or project', async () => {
      const unknown = { url: URL, appId: `app_${'0'.repeat(26)}` };
      expectNotFound(await posthorn.api.post('/webhooks', unknown));
      const global = { url: URL, projectId: `proj_${'0'.repeat(26)}`, environmentId: 'live' };
      expectNotFound(await posthorn.api.post('/webhooks', global));
    });
  });

  describe('Webhooks · POST /webhooks · global webhook', () => {
    it('belongs to a project and an environment instead of an app', async () => {
      const made = await make.webhook({ url: URL, projectId, environment_id: 'live-1_A' });
      expect(await get(made.id)).toEqual(made);
      const ofApp = dataOf<ShownWebhook[]>(await posthorn.api.get(`/webhooks?appId=${appId}`));
      expect(ofApp.map(({ id }) => id)).not.toContain(made.id);
    });

    it.each([
      [{}, ['appId']],
      [{ projectId: 'proj_1' }, ['environmentId']],
      [{ environmentId: 'live' }, ['projectId']],
      [{ appId: 'app_1', projectId: 'proj_1' }, ['projectId']],
      [{ appId: 'app_1', environmentId: 'live' }, ['environmentId']],
      [{ projectId: 'proj_1', environmentId: 'a b' }, ['environmentId']],
      [{ projectId: 'proj_1', environmentId: 'x'.repeat(65) }, ['environmentId']],
      [{ projectId: 'proj_1', environmentId: '' }, ['environmentId']],
    ])('is refused as %j because of %j', async (owner, problems) => {
      expectInvalid(await posthorn.api.post('/webhooks', { url: URL, ...owner }), ...problems);
    });
  });

  describe('Webhooks · GET /webhooks', () => {
    it('returns the webhooks of an app, oldest first, with the secret and without authMethod', async () => {
      const { id } = await make.app({ projectId });
      const first = await make.webhook({ url: URL, appId: id, name: 'First' });
      const second = await make.webhook({ url: URL, appId: id, name: 'Second', ...BASIC });
      const list = async (query: string) =>
        dataOf<ShownWebhook[]>(await posthorn.api.get(`/webhooks?${query}`));
      expect(await list(`appId=${id}`)).toEqual([first, second].map(withoutAuth));
      expect(await list(`app_id=${id}&limit=1&skip=1`)).toEqual([withoutAuth(second)]);
      const all = await list('limit=1000');
      expect(all.map((each) => each.id)).toEqual(all.map((each) => each.id).sort());
      expect(all).toEqual(expect.arrayContaining([withoutAuth(first), withoutAuth(second)]));
    });

    it.each(['limit=0', 'limit=1001', 'skip=-1', 'appId=', 'app=1'])(
      'refuses %s',
      async (query) => {
        const [name = ''] = query.split('=');
        expectInvalid(await posthorn.api.get(`/webhooks?${query}`), name);
      },
    );
  });

  describe('Webhooks · GET /webhooks/{webhookId}', () => {
    it('returns the webhook as its creation did, with secret and authMethod', async () => {
      for (const auth of [{}, BASIC, API_KEY]) {
        const made = await make.webhook({ url: URL, appId, ...auth });
        expect(await get(made.id)).toEqual(made);
      }
    });

    it('returns 404 for an unknown id', async () => {
      expectNotFound(await posthorn.api.get(`/webhooks/${UNKNOWN}`));
    });
  });

  describe('Webhooks · PUT /webhooks/{webhookId}', () => {
    it('changes name and url, updates updatedAt, and returns the webhook without authMethod', async () => {
      const made = await make.webhook({ url: URL, appId });
      const changes = { name: 'New', url: 'https://example.org/new' };
      const changed = await put(made.id, changes);
      expect(changed).toEqual({ ...withoutAuth(made), ...changes, updatedAt: aTime });
      expect(changed.updatedAt > made.updatedAt).toBe(true);
      expect(await get(made.id)).toEqual({ ...changed, authMethod: made.authMethod });
    });

    it('changes nothing when no field is given, not even updatedAt', async () => {
      const made = await make.webhook({ url: URL, appId, ...API_KEY });
      expect(await put(made.id, {})).toEqual(withoutAuth(made));
      expect(await get(made.id)).toEqual(made);
    });

    it.each([
      [{ customHeaders: [{ key: 'X-New', value: '1' }] }],
      [{ customHeaders: [] }],
      [{ eventTypes: ['a', 'b'] }],
      [{ eventTypes: [] }],
      [{ disabled: true }],
      [{ rateLimitPerSecond: 10 }],
      [{ rateLimitPerSecond: null }],
      [{ timeoutSeconds: 15 }],
    ])('replaces %j and keeps everything else', async (changes) => {
      const customHeaders = [{ key: 'X-Old', value: '1' }];
      const fields = { customHeaders, eventTypes: ['old'], rateLimitPerSecond: 3, ...API_KEY };
      const made = await make.webhook({ url: URL, appId, ...fields });
      await put(made.id, changes);
      expect(await get(made.id)).toEqual({ ...made, ...changes, updatedAt: aTime });
    });

    it('returns 404 for an unknown id', async () => {
      expectNotFound(await posthorn.api.put(`/webhooks/${UNKNOWN}`, { name: 'New' }));
    });
  });

  describe('Webhooks · DELETE /webhooks/{webhookId}', () => {
    it('returns the envelope only, and the webhook is gone', async () => {
      const { id } = await make.webhook({ url: URL, appId });
      expectDeleted(await posthorn.api.delete(`/webhooks/${id}`));
      expectNotFound(await posthorn.api.get(`/webhooks/${id}`));
      expectNotFound(await posthorn.api.put(`/webhooks/${id}`, { name: 'New' }));
      expectNotFound(await posthorn.api.delete(`/webhooks/${id}`));
      expectNotFound(await posthorn.api.post('/webhook-messages', { webhookId: id, payload: {} }));
    });
  });
});

describe('The fields of webhooks', () => {
  const url = 'https://example.com/hook';
  const basic = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
  const apiKey = { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' };

  let posthorn: OwnCompany;
  let make: Resources;
  let appId: string;

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    make = createResources(posthorn.api);
    ({ id: appId } = await make.app());
  }, 120_000);

  afterAll(() => posthorn.stop(), 60_000);

  const create = (fields: object): Promise<ApiAnswer> =>
    posthorn.api.post('/webhooks', { url, appId, ...fields });

  /** Expects creation and update to refuse the field. */
  async function expectRefused(fields: object, ...problems: string[]): Promise<void> {
    expectInvalid(await create(fields), ...problems);
    const { id } = await make.webhook({ url, appId });
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, fields), ...problems);
  }

  describe('Webhook · name', () => {
    it.each(['', 'x', 'x'.repeat(101), 7, null])('refuses %j', async (name) => {
      await expectRefused({ name }, 'name');
    });

    it.each(['xy', 'x'.repeat(100)])('takes %j', async (name) => {
      const { id } = await make.webhook({ url, appId, name });
      dataOf(await posthorn.api.put(`/webhooks/${id}`, { name }));
    });
  });

  describe('Webhook · url', () => {
    it('is required to create a webhook', async () => {
      expectInvalid(await posthorn.api.post('/webhooks', { appId }), 'url');
    });

    it.each([
      ...['/hook', 'example.com/hook', 'ftp://example.com/', 'javascript:alert(1)', '', 7, null],
      ...['https://user@example.com/', 'https://u:p@example.com/', 'https://example.com/#part'],
      ...[
        'https://10.0.0.1/',
        'https://192.168.1.1/',
        'https://169.254.169.254/',
        'https://[fd00::1]/',
      ],
      ...['https://0xa9fea9fe/', 'https://metadata.google.internal/', 'https://printer.local/'],
      ...['https://intranet/', 'https://example.com:0/', 'https://example.com:6379/'],
      `https://example.com/${'x'.repeat(2_029)}`,
    ])('%j is refused', async (bad) => {
      await expectRefused({ url: bad }, 'url');
    });

    it.each([
      ['https://example.com/a?b=c&d', 'https://example.com/a?b=c&d'],
      ['http://example.com', 'http://example.com/'],
      [`https://example.com/${'x'.repeat(2_028)}`, `https://example.com/${'x'.repeat(2_028)}`],
    ])('%j is taken', async (given, shown) => {
      expect(dataOf<ShownWebhook>(await create({ url: given }), 201).url).toBe(shown);
    });

    it('must be https and may not be a loopback address by default', async () => {
      const [port = 0] = await freePorts(1);
      const strict = { EGRESS_ALLOW_HTTP: 'false', EGRESS_ALLOW_LOOPBACK: 'false' };
      const gateway = await posthorn.start('gateway', { ...strict, PORT: String(port) });
      const api = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey);
      for (const refused of ['http://example.com/', 'https://127.0.0.1/', 'https://[::1]/']) {
        expectInvalid(await api.post('/webhooks', { url: refused, appId }), 'url');
      }
      dataOf(await api.post('/webhooks', { url, appId }), 201);
      await gateway.stop();
    });
  });

  describe('Webhook · authMethod', () => {
    it.each([
      [
        { hmacHeader: 'X-Sig', hmacSecret: 's' },
        { method: 'hmac', hmacHeader: 'X-Sig', hmacSecret: 's' },
      ],
      [
        { authMethod: 'hmac', hmacSecret: 's' },
        { hmacHeader: 'X-Service-Signature', hmacSecret: 's' },
      ],
      [basic, { method: 'basic', username: 'u', password: 'p' }],
      [apiKey, { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' }],
      [{ ...apiKey, apiKeyHeader: 'Authorization' }, { apiKeyHeader: 'Authorization' }],
    ])('given as %j is shown as %j', async (auth, shown) => {
      expect(await make.webhook({ url, appId, ...auth })).toMatchObject({ authMethod: shown });
    });

    it.each<[object, string[]]>([
      [{ authMethod: 'api_key' }, ['authMethod']],
      [{ authMethod: 'HMAC' }, ['authMethod']],
      [{ authMethod: null }, ['authMethod']],
      [{ authMethod: 'basic' }, ['basicAuthUsername', 'basicAuthPassword']],
      [{ authMethod: 'basic', basicAuthUsername: 'u' }, ['basicAuthPassword']],
      [{ authMethod: 'apiKey' }, ['apiKey', 'apiKeyHeader']],
      [{ authMethod: 'apiKey', apiKeyHeader: 'X-Key' }, ['apiKey']],
      [
        { basicAuthUsername: 'u', basicAuthPassword: 'p' },
        ['basicAuthUsername', 'basicAuthPassword'],
      ],
      [{ apiKey: 'k', apiKeyHeader: 'X-Key' }, ['apiKey', 'apiKeyHeader']],
      [{ ...basic, hmacSecret: 's' }, ['hmacSecret']],
      [
        { ...apiKey, hmacHeader: 'X-Sig', basicAuthUsername: 'u' },
        ['hmacHeader', 'basicAuthUsername'],
      ],
      [{ ...basic, basicAuthUsername: 'a:b' }, ['basicAuthUsername']],
      [{ ...basic, basicAuthPassword: '' }, ['basicAuthPassword']],
      [{ hmacSecret: '' }, ['hmacSecret']],
      [{ hmacHeader: 'Authorization' }, ['hmacHeader']],
      [{ hmacHeader: 'X Sig' }, ['hmacHeader']],
      [{ ...apiKey, apiKey: 'a\r\nX-Injected: 1' }, ['apiKey']],
      [{ ...apiKey, apiKey: 'schlüssel\u0000' }, ['apiKey']],
      [{ ...apiKey, apiKey: '日本' }, ['apiKey']],
      [{ ...apiKey, apiKey: 'k'.repeat(4_097) }, ['apiKey']],
      [{ authMetod: 'basic' }, ['authMetod']],
    ])('given as %j is refused because of %j', async (auth, problems) => {
      await expectRefused(auth, ...problems);
    });

    it('requires all fields of a new method and removes the old ones', async () => {
      const { id } = await make.webhook({ url, appId, ...basic });
      const put = (changes: object) => posthorn.api.put(`/webhooks/${id}`, changes);
      expectInvalid(await put({ authMethod: 'apiKey', apiKey: 'k' }), 'apiKeyHeader');
      dataOf(await put({ basicAuthPassword: 'new' }));
      const shown = async () =>
        dataOf<ShownWebhook>(await posthorn.api.get(`/webhooks/${id}`)).authMethod;
      expect(await shown()).toEqual({ method: 'basic', username: 'u', password: 'new' });
      dataOf(await put(apiKey));
      expect(await shown()).toEqual({ method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' });
      expectInvalid(await put({ basicAuthPassword: 'p' }), 'basicAuthPassword');
    });
  });
});

describe('The headers of webhooks', () => {
  const url = 'https://example.com/hook';
  const basic = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
  const apiKey = { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' };

  let posthorn: OwnCompany;
  let make: Resources;
  let appId: string;

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    make = createResources(posthorn.api);
    ({ id: appId } = await make.app());
  }, 120_000);

  afterAll(() => posthorn.stop(), 60_000);

  /** Expects creation and update to refuse the field. */
  async function expectRefused(fields: object, ...problems: string[]): Promise<void> {
    expectInvalid(await posthorn.api.post('/webhooks', { url, appId, ...fields }), ...problems);
    const { id } = await make.webhook({ url, appId });
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, fields), ...problems);
  }

  describe('Webhook · names of headers [security]', () => {
    const REFUSED = [
      ...['connection', 'Keep-Alive', 'TE', 'trailer', 'transfer-encoding', 'upgrade', 'Host'],
      ...['cookie', 'expect', 'proxy-authorization', 'Proxy-Connection', 'via', 'X-Real-IP'],
      ...['forwarded', 'x-forwarded-for', 'X-Forwarded-Host', 'content-type', 'Content-Length'],
      ...['content-encoding', 'webhook-id', 'Webhook-Signature', 'webhook-timestamp', 'metadata'],
      ...['Metadata-Flavor', 'x-aws-ec2-metadata-token', 'X-aws-ec2-metadata-token-ttl-seconds'],
      ...['', 'X Space', 'X-Col:on', 'X-CR\r\n', 'X-Nul\u0000', 'X-Ünicode', '(comment)'],
    ];

    it.each(REFUSED)('refuses %j as custom header, hmacHeader and apiKeyHeader', async (name) => {
      await expectRefused({ customHeaders: [{ key: name, value: 'v' }] }, 'customHeaders.0.key');
      await expectRefused({ hmacHeader: name }, 'hmacHeader');
      await expectRefused({ ...apiKey, apiKeyHeader: name }, 'apiKeyHeader');
    });
  });

  describe('Webhook · customHeaders [security]', () => {
    const header = (key: string, value: unknown = 'v') => ({ key, value });
    const many = (count: number) => Array.from({ length: count }, (_, n) => header(`X-${n}`));

    it.each<[string, unknown, string]>([
      ['a value with CR', [header('X-A', 'a\rb')], 'customHeaders.0.value'],
      ['a value with LF', [header('X-A', 'a\nX-B: c')], 'customHeaders.0.value'],
      ['a value with NUL', [header('X-A', 'a\u0000')], 'customHeaders.0.value'],
      ['a value that is not Latin-1', [header('X-A', 'π')], 'customHeaders.0.value'],
      ['a value with DEL', [header('X-A', '\u007f')], 'customHeaders.0.value'],
      ['a value of 4,097 characters', [header('X-A', 'x'.repeat(4_097))], 'customHeaders.0.value'],
      ['a value that is a number', [header('X-A', 1)], 'customHeaders.0.value'],
      ['a missing value', [{ key: 'X-A' }], 'customHeaders.0.value'],
      ['a missing key', [{ value: 'v' }], 'customHeaders.0.key'],
      ['a member more', [{ ...header('X-A'), note: 1 }], 'customHeaders.0.note'],
      ['twenty-one of them', many(21), 'customHeaders'],
      ['an object', { 'X-A': 'v' }, 'customHeaders'],
      ['the header of the signature', [header('x-service-signature')], 'customHeaders.0.key'],
    ])('with %s are refused', async (_what, customHeaders, problem) => {
      await expectRefused({ customHeaders }, problem);
    });

    it("may not replace the header that the webhook's authMethod uses", async () => {
      await expectRefused(
        { ...basic, customHeaders: [header('Authorization')] },
        'customHeaders.0.key',
      );
      await expectRefused({ ...apiKey, customHeaders: [header('x-key')] }, 'customHeaders.0.key');
      const { id } = await make.webhook({ url, appId, customHeaders: [header('X-Key')] });
      expectInvalid(await posthorn.api.put(`/webhooks/${id}`, apiKey), 'customHeaders');
    });

    it('may be twenty with values of 4,096 characters, and are shown unchanged', async () => {
      const customHeaders = [
        ...many(18),
        header('Authorization', 'Bearer é'),
        header('X-L', 'x'.repeat(4_096)),
      ];
      expect(await make.webhook({ url, appId, customHeaders })).toMatchObject({ customHeaders });
    });
  });
});

describe('GET /api/v1/source-ips', () => {
  let posthorn: OwnCompany;
  let api: ApiClient;

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    api = createApiClient(posthorn.baseUrl, posthorn.apiKey, { companyid: posthorn.companyId });
  }, 120_000);

  afterAll(() => posthorn.stop());

  it('shows the ranges of the configuration', async () => {
    const shown = await api.get('/api/v1/source-ips');
    expect(dataOf(shown, 200)).toEqual({ ranges: ['203.0.113.8/32', '2001:db8::/48'] });
  });

  it('needs an API key', async () => {
    const anonymous = createApiClient(posthorn.baseUrl, '');
    expect((await anonymous.get('/api/v1/source-ips')).status).toBe(401);
  });
});
