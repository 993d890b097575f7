import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { expectInvalid } from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { createResources, type Resources } from '../../../support/api/resources.ts';

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
