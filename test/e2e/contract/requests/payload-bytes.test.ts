import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../../support/api/api-client.ts';
import { eventually } from '../../../support/time/eventually.ts';
import { dataOf, expectFailure } from '../../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownMessage,
} from '../../../support/api/resources.ts';

const MAX_BODY_BYTES = 262_144;

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

const post = (body: string): Promise<ApiAnswer> => posthorn.api.post('/webhook-messages', body);
const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

describe('Webhook messages · the payload is delivered byte for byte [security]', () => {
  const prefix = (webhookId: string) => `{"webhookId":"${webhookId}","payload":`;
  /** Returns a payload with which `{"webhookId":…,"payload":…}` has exactly this many bytes. */
  function payloadFor(webhookId: string, bodyBytes: number, unit: string): string {
    const bytes = bodyBytes - prefix(webhookId).length - '{"t":""}}'.length;
    const count = Math.floor(bytes / Buffer.byteLength(unit));
    return `{"t":"${unit.repeat(count)}${'x'.repeat(bytes - count * Buffer.byteLength(unit))}"}`;
  }
  const deep = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;

  it.each<[string, (webhookId: string) => string]>([
    ['a big integer', () => '{"n":12345678901234567890}'],
    ['a number beyond every double', () => '{"x":1e400,"y":-0.0,"z":1E+2}'],
    ['a key given twice', () => '{"a":1.0,"a":2}'],
    ['keys that look like ours', () => '{"webhookId":"x","app_id":1,"payload":{"payload":{}}}'],
    ['escapes', () => '{"u":"\\u00e9\\/\\ud83d\\ude00\\ud800\\u0000","\\u0061":"\\n"}'],
    ['characters of all planes', () => '{"é":"\u2028日本😀\u0085","":" "}'],
    ['spaces and line ends', () => '{\r\n\t"a" : [ 1 ,2 ]\n}'],
    ['nothing in it', () => '{}'],
    ['prototype names', () => '{"__proto__":{"polluted":1},"constructor":{"prototype":1}}'],
    ['64 levels', () => deep(64)],
    ['a body of 262,144 bytes', (id) => payloadFor(id, MAX_BODY_BYTES, 'x')],
    ['a body of 262,144 bytes of unicode', (id) => payloadFor(id, MAX_BODY_BYTES, 'é日😀')],
  ])('with %s', async (_what, payloadOf) => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const payload = payloadOf(webhookId);
    const message = dataOf<ShownMessage>(await post(`${prefix(webhookId)}${payload}}`), 202);
    expect(message.payload).toBe(payload);
    const { body } = await eventually('the delivery', () => receiver.of(message.id)[0]);
    expect([body.length, sha256(body)]).toEqual([Buffer.byteLength(payload), sha256(payload)]);
  });

  it('a body one byte too large is refused with 413', async () => {
    const payload = payloadFor('wh_1', MAX_BODY_BYTES + 1, 'x');
    expectFailure(await post(`${prefix('wh_1')}${payload}}`), 413, 'body_too_large');
  });

  it('a payload nested 65 levels deep is refused with 400', async () => {
    expectFailure(await post(`${prefix('wh_1')}${deep(65)}}`), 400, 'invalid_json');
  });
});
