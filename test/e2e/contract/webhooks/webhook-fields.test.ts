import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../../tools/local-stack/machine/ports.ts';
import { createApiClient, type ApiAnswer } from '../../../support/api/api-client.ts';
import { dataOf, expectInvalid } from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import {
  createResources,
  type Resources,
  type ShownWebhook,
} from '../../../support/api/resources.ts';

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

  it('requires all fields of a new method and removes those of the old one', async () => {
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
