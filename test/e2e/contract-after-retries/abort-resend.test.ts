import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { aTime, dataOf, expectInvalid, expectNotFound } from '../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';

interface ShownResend {
  id: string;
  status: string;
  abortAskedAt: string | null;
  total: number;
  succeeded: number;
  failed: number;
}

const RESENDS = '/api/v1/resends';
const FAILED = 5;

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;
/** One attempt a second, so a page of the resend has two deliveries. */
let webhookId: string;
let since: string;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
  ({ id: webhookId } = await make.webhook({ url: receiver.url }));
  receiver.answerWith(failing(99));
  const made = await Promise.all(Array.from({ length: FAILED }, () => make.message({ webhookId })));
  since = made.map(({ createdAt }) => createdAt).sort()[0] ?? '';
  for (const { deliveries } of made) {
    await make.deliveryOnce('exhausted', String(deliveries[0]?.id));
  }
  dataOf(await posthorn.api.put(`/webhooks/${webhookId}`, { rateLimitPerSecond: 1 }));
  receiver.answerWith(failing(0));
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const start = async (): Promise<ShownResend> =>
  dataOf(await posthorn.api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since }), 202);
const abort = async (id: string): Promise<ShownResend> =>
  dataOf(await posthorn.api.post(`${RESENDS}/${id}/abort`, {}));
const read = async (id: string): Promise<ShownResend> =>
  dataOf(await posthorn.api.get(`${RESENDS}/${id}`));
const ended = (id: string): Promise<ShownResend> =>
  eventually(
    'the end of the resend',
    async () => {
      const shown = await read(id);
      return shown.status === 'running' ? null : shown;
    },
    40_000,
  );

describe('Resend · POST /api/v1/resends/{id}/abort', () => {
  let resend: ShownResend;

  it('stops before the next page, counts what was sent, and is repeatable', async () => {
    const { id } = await start();
    const before = receiver.received.length;
    await eventually('the first attempt', () => receiver.received.length > before);
    expect(await abort(id)).toMatchObject({ id, abortAskedAt: aTime });
    resend = await ended(id);
    const { succeeded, failed } = resend;
    expect(resend).toMatchObject({ status: 'aborted', total: FAILED, failed: 0 });
    expect(succeeded).toBeGreaterThan(0);
    expect(succeeded + failed).toBeLessThan(FAILED);
    expect(receiver.received.length - before).toBe(succeeded);
    expect(await abort(id)).toEqual(resend);
  });

  it('leaves the rest to another resend, which may begin at once', async () => {
    const next = await start();
    expect(next.total).toBe(FAILED - resend.succeeded);
    const done = await ended(next.id);
    expect(done).toMatchObject({ status: 'done', succeeded: next.total, abortAskedAt: null });
    expect(await abort(next.id)).toEqual(done);
  });

  it('is recorded in the audit log', async () => {
    const listed = await posthorn.api.get(`/api/v1/audit-events?targetId=${resend.id}`);
    expect(dataOf(listed)).toMatchObject([
      { action: 'resend.aborted', outcome: 'done', target: { kind: 'resend', id: resend.id } },
      { action: 'resend.aborted', outcome: 'done' },
    ]);
  });

  it('is 404 for a resend that does not exist', async () => {
    expectNotFound(await posthorn.api.post(`${RESENDS}/rsnd_unknown/abort`, {}));
  });
});

describe('Resends · GET /api/v1/resends', () => {
  it('lists those of a webhook, newest first, page by page', async () => {
    const path = `${RESENDS}?webhookId=${webhookId}&limit=1`;
    const { body: first } = await posthorn.api.get(path);
    const cursor = String(first.nextCursor);
    const { body: second } = await posthorn.api.get(`${path}&cursor=${cursor}`);
    expect([first.data, second.data]).toMatchObject([
      [{ webhookId, status: 'done' }],
      [{ webhookId, status: 'aborted' }],
    ]);
    expect(second.nextCursor).toBeNull();
    expect(dataOf(await posthorn.api.get(`${RESENDS}?webhookId=wh_unknown`))).toEqual([]);
    expectInvalid(await posthorn.api.get(`${RESENDS}?cursor=wh_1`), 'cursor');
  });
});
