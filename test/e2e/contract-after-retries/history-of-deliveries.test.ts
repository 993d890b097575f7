import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import {
  aTime,
  anId,
  dataOf,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
  type ShownMessage,
} from '../../support/api/resources.ts';

const MESSAGES = '/api/v1/webhook-messages';

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;
let good: string;
let bad: string;
let off: string;
/** To the failing webhook. */
let exhausted: ShownMessage;
/** To all three webhooks. */
let mixed: ShownMessage;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
  receiver.answerWith((response, received) => {
    if (received.path === '/hook/bad') {
      response.writeHead(503, { 'x-request-id': 'r-1', 'set-cookie': 'a=hush', server: 's' });
      response.end(`sorry ${'x'.repeat(5_000)}`);
    } else response.writeHead(204).end();
  });
  const { id: appId } = await make.app();
  ({ id: good } = await make.webhook({ url: receiver.url, appId }));
  ({ id: bad } = await make.webhook({ url: `${receiver.url}/bad`, appId }));
  ({ id: off } = await make.webhook({ url: receiver.url, appId, disabled: true }));
  exhausted = await make.message({ webhookId: bad });
  mixed = await make.message({ appId });
  await eventually('final states', async () => {
    const shown = await posthorn.api.get(`${MESSAGES}?webhookId=${bad}`);
    return dataOf<ShownMessage[]>(shown).every(({ status }) => status === 'exhausted');
  });
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

describe('History · GET /api/v1/webhook-messages/{id}/deliveries', () => {
  it('lists the deliveries, newest first, page by page', async () => {
    const read = (query = '') => posthorn.api.get(`${MESSAGES}/${mixed.id}/deliveries${query}`);
    const all = await read();
    const shown = dataOf<ShownDelivery[]>(all);
    expect(shown.map(({ webhookId }) => webhookId)).toEqual([off, bad, good]);
    for (const delivery of shown) expect(await make.delivery(delivery.id)).toEqual(delivery);
    expect(all.body.nextCursor).toBeNull();
    const first = await read('?limit=2');
    expect(first.body.data).toEqual(shown.slice(0, 2));
    const second = await read(`?limit=2&cursor=${first.body.nextCursor ?? ''}`);
    expect([second.body.data, second.body.nextCursor]).toEqual([shown.slice(2), null]);
    expectInvalid(await read('?limit=101&cursor=x&status=pending'), 'limit', 'cursor', 'status');
  });
});

describe('History · GET /api/v1/deliveries/{id}', () => {
  it('returns every attempt with its outcome, and of the response only what is safe to show', async () => {
    const { id = '' } = exhausted.deliveries[0] ?? {};
    const shown = await make.delivery(id);
    const attempt = (number: number) => ({
      id: anId('att'),
      number,
      processed: true,
      resend: false,
      outcome: 'http_5xx',
      statusCode: 503,
      response: `sorry ${'x'.repeat(4_090)}`,
      failureReason: null,
      durationMs: expect.any(Number),
      headers: exhausted.headers,
      responseHeaders: expect.arrayContaining([{ key: 'x-request-id', value: 'r-1' }]),
      createdAt: aTime,
      updatedAt: aTime,
    });
    expect(shown).toEqual({
      id,
      messageId: exhausted.id,
      webhookId: bad,
      status: 'exhausted',
      reason: null,
      attemptCount: 2,
      nextAttemptAt: null,
      attempts: [attempt(1), attempt(2)],
      createdAt: exhausted.createdAt,
      updatedAt: aTime,
    });
    expect(JSON.stringify(shown)).not.toContain('hush');
    expect(exhausted.deliveryAttempt?.id).toBe(shown.attempts[0]?.id);
  });

  it('returns 404 for an unknown id', async () => {
    expectNotFound(await posthorn.api.get(`/api/v1/deliveries/dlv_${'0'.repeat(26)}`));
  });
});
