import { beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { type ApiClient, createApiClient } from '../../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectDeleted,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import { type ShownWebhook, withoutAuth } from '../../../support/api/resources.ts';
import { useCompany } from '../../../support/process/use-company.ts';

describe('Webhooks', () => {
  const URL = 'https://example.com/hook';
  const UNKNOWN = `wh_${'0'.repeat(26)}`;
  const BASIC = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
  const API_KEY = { authMethod: 'apiKey', apiKey: 'k-1', apiKeyHeader: 'X-Key' };

  const { posthorn, make } = useCompany('contract');
  let projectId: string;
  let appId: string;

  beforeAll(async () => {
    ({ id: projectId } = await make.project());
    ({ id: appId } = await make.app({ projectId }));
  }, 120_000);

  const get = async (id: string): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.get(`/webhooks/${id}`));

  const put = async (id: string, changes: object): Promise<ShownWebhook> =>
    dataOf(await posthorn.api.put(`/webhooks/${id}`, changes));

  describe('Webhooks · POST /webhooks', () => {
    it('returns every field, with defaults for absent ones', async () => {
      const made = await make.webhook({ url: URL, appId });
      expect(made).toEqual({
        id: anId('wh'),
        appId,
        name: 'example.com',
        url: URL,
        signatureHeaders: ['webhook'],
        customHeaders: [],
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
        headers: [{ key: 'Content-Type', value: 'application/json' }],
        authMethod: {
          method: 'hmac',
          hmacHeader: 'X-Service-Signature',
          hmacSecret: made.secret,
        },
        eventTypes: [],
        filter: null,
        disabled: false,
        disabledReason: null,
        rateLimitPerSecond: null,
        timeoutSeconds: null,
        maxAttempts: null,
        finalStatusCodes: null,
        onGone: 'retry',
        obeyControlHeaders: false,
        ordering: 'none',
        held: null,
        waiting: 0,
        blockedKeys: 0,
        uid: null,
        metadata: {},
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
      expectInvalid(await posthorn.api.get('/webhooks?limit=0&app=1'), 'app', 'limit');
    });
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
      const counts = { waiting: 0, blockedKeys: 0 };
      expect(await get(made.id)).toEqual({ ...changed, authMethod: made.authMethod, ...counts });
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
      [{ maxAttempts: 1 }],
      [{ finalStatusCodes: [400, 599] }],
      [{ onGone: 'disable' }],
      [{ obeyControlHeaders: true }],
      [{ ordering: 'block' }],
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

  const { posthorn, make } = useCompany('contract');
  let appId: string;

  beforeAll(async () => {
    ({ id: appId } = await make.app());
  }, 120_000);

  it.each<[object, string]>([
    [{ name: 'x' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 17 }, 'name'],
    [{ url: 'https://10.0.0.1/' }, 'url'],
    [{ url: null }, 'url'],
    [{ authMethod: 'basic', basicAuthUsername: 'u' }, 'basicAuthPassword'],
    [{ authMetod: 'basic' }, 'authMetod'],
    [{ hmacHeader: 'Host' }, 'hmacHeader'],
    [{ customHeaders: [{ key: 'X-A', value: 'a\nX-B: c' }] }, 'customHeaders.0.value'],
    [{ customHeaders: [{ value: 'v' }] }, 'customHeaders.0.key'],
    [{ customHeaders: { 'X-A': 'v' } }, 'customHeaders'],
    [{ customHeaders: [{ key: 'x-service-signature', value: 'v' }] }, 'customHeaders.0.key'],
  ])('are refused at creation and in a change as %j [security]', async (fields, problem) => {
    expectInvalid(await posthorn.api.post('/webhooks', { url, appId, ...fields }), problem);
    const { id } = await make.webhook({ url, appId });
    expectInvalid(await posthorn.api.put(`/webhooks/${id}`, fields), problem);
  });

  it('need a URL: https and no loopback address by default', async () => {
    expectInvalid(await posthorn.api.post('/webhooks', { appId }), 'url');
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

  it.each([
    [
      { authMethod: 'hmac', hmacSecret: 's' },
      { hmacHeader: 'X-Service-Signature', hmacSecret: 's' },
    ],
    [basic, { method: 'basic', username: 'u', password: 'p' }],
    [apiKey, { method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' }],
  ])('show authentication %j as %j', async (auth, shown) => {
    expect(await make.webhook({ url, appId, ...auth })).toMatchObject({ authMethod: shown });
  });

  it('that a new authentication method needs are required, and those of the old one removed', async () => {
    const { id } = await make.webhook({
      url,
      appId,
      ...basic,
      customHeaders: [{ key: 'X-Key', value: 'v' }],
    });
    const put = (changes: object) => posthorn.api.put(`/webhooks/${id}`, changes);
    expectInvalid(await put({ authMethod: 'apiKey', apiKey: 'k' }), 'apiKeyHeader');
    expectInvalid(await put(apiKey), 'customHeaders');
    dataOf(await put({ ...apiKey, customHeaders: [] }));
    const { authMethod } = dataOf<ShownWebhook>(await posthorn.api.get(`/webhooks/${id}`));
    expect(authMethod).toEqual({ method: 'api_key', apiKey: 'k', apiKeyHeader: 'X-Key' });
    expectInvalid(await put({ basicAuthPassword: 'p' }), 'basicAuthPassword');
  });

  it('may have twenty headers with values of 4,096 characters, shown unchanged', async () => {
    const customHeaders = Array.from({ length: 20 }, (_, n) => ({ key: `X-${n}`, value: 'v' }));
    customHeaders[18] = { key: 'Authorization', value: 'Bearer é' };
    customHeaders[19] = { key: 'X-L', value: 'x'.repeat(4_096) };
    expect(await make.webhook({ url, appId, customHeaders })).toMatchObject({ customHeaders });
  });
});

describe('GET /api/v1/source-ips', () => {
  const { posthorn } = useCompany('contract');
  let api: ApiClient;

  beforeAll(() => {
    api = createApiClient(posthorn.baseUrl, posthorn.apiKey, { companyid: posthorn.companyId });
  });

  it('shows the ranges of the configuration', async () => {
    const shown = await api.get('/api/v1/source-ips');
    expect(dataOf(shown, 200)).toEqual({ ranges: ['203.0.113.8/32', '2001:db8::/48'] });
  });

  it('needs no API key, and caches may keep what everyone gets', async () => {
    const everyone = createApiClient(posthorn.baseUrl, null);
    const shown = await everyone.get('/api/v1/source-ips');
    expect(dataOf(shown, 200)).toEqual({ ranges: ['203.0.113.8/32', '2001:db8::/48'] });
    expect(shown.headers.get('cache-control')).toBe('public, max-age=3600');
    expect(shown.headers.get('ratelimit')).toMatch(/^"address";/);
    expectInvalid(await everyone.get('/api/v1/source-ips?page=2'), 'page');
    expect((await api.get('/api/v1/source-ips')).headers.get('cache-control')).toBe('no-store');
  });

  it.each([{ 'x-api-key': '' }, { authorization: 'Basic YTpi' }])(
    'refuses a key that is not valid: %j',
    async (headers) => {
      const other = createApiClient(posthorn.baseUrl, null, headers);
      expect((await other.get('/api/v1/source-ips')).status).toBe(401);
    },
  );
});
