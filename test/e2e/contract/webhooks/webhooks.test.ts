import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  aTime,
  anId,
  dataOf,
  expectDeleted,
  expectInvalid,
  expectNotFound,
} from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import {
  createResources,
  withoutAuth,
  type Resources,
  type ShownWebhook,
} from '../../../support/api/resources.ts';

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
  it('returns every field, with defaults for those that were not given', async () => {
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
      createdAt: aTime,
      updatedAt: made.createdAt,
    });
  });

  it('returns the given fields in camelCase, also when they were given in snake_case', async () => {
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

  it('gives each webhook its own secret [security]', async () => {
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

  it.each(['limit=0', 'limit=1001', 'skip=-1', 'appId=', 'app=1'])('refuses %s', async (query) => {
    const [name = ''] = query.split('=');
    expectInvalid(await posthorn.api.get(`/webhooks?${query}`), name);
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
