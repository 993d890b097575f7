import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { dataOf } from '../../../support/api/expect-answers.ts';
import { createResources, type ShownMessage } from '../../../support/api/resources.ts';
import type { OwnCompany } from '../../../support/process/posthorn.ts';
import { joinShared } from '../../../support/process/shared-posthorn.ts';

/** More than the gateway describes and sends in one piece. */
const WEBHOOKS = 501;
const AT_ONCE = 25;

let posthorn: OwnCompany;
let appId: string;
let webhookIds: string[];

beforeAll(async () => {
  posthorn = await joinShared('contract');
  const make = createResources(posthorn.api);
  ({ id: appId } = await make.app());
  webhookIds = [];
  while (webhookIds.length < WEBHOOKS) {
    const count = Math.min(AT_ONCE, WEBHOOKS - webhookIds.length);
    // Disabled: their deliveries are cancelled at once, and nothing is sent.
    const fields = { appId, url: 'http://127.0.0.1:9/hook', disabled: true };
    const made = await Promise.all(Array.from({ length: count }, () => make.webhook(fields)));
    webhookIds.push(...made.map(({ id }) => id));
  }
}, 120_000);

async function send(key: string): Promise<{ text: string; replayed: string | null }> {
  const response = await fetch(`${posthorn.baseUrl}/webhook-messages`, {
    method: 'POST',
    headers: {
      'x-api-key': posthorn.apiKey,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify({ appId, payload: { text: '"deliveries":[' } }),
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([
    ...[202, 'application/json; charset=utf-8'],
  ]);
  return { text: await response.text(), replayed: response.headers.get('idempotency-replayed') };
}

describe('A message to hundreds of webhooks', () => {
  it('is answered with all of its deliveries, and byte for byte again when it is repeated', async () => {
    const key = randomUUID();
    const first = await send(key);
    const { message, data } = JSON.parse(first.text) as { message: string; data: ShownMessage };
    expect(message).toBe('Message accepted');
    expect(data.deliveries.map(({ webhookId }) => webhookId)).toEqual(webhookIds.sort());
    expect(new Set(data.deliveries.map(({ status }) => status))).toEqual(new Set(['cancelled']));
    const stored = dataOf<ShownMessage>(
      await posthorn.api.get(`/api/v1/webhook-messages/${data.id}`),
    );
    expect(data.deliveries).toEqual(stored.deliveries);
    expect(await send(key)).toEqual({ text: first.text, replayed: 'true' });
  });
});
