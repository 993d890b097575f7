import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import {
  aTime,
  anId,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import {
  failing,
  startReceiver,
  type Answer,
  type Receiver,
} from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
} from '../../support/api/resources.ts';

interface ShownResend {
  id: string;
  status: string;
  total: number;
  succeeded: number;
  failed: number;
}

const OK: Answer = (response) => response.writeHead(200).end('ok');

let posthorn: OwnCompany;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  posthorn = await joinShared('contract-after-retries');
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

const disable = async (id: string, disabled: boolean) =>
  dataOf(await posthorn.api.put(`/webhooks/${id}`, { disabled }));

/** Sends messages that fail to a webhook; returns their deliveries, all exhausted. */
async function exhausted(webhookId: string, count = 1): Promise<ShownDelivery[]> {
  receiver.answerWith(failing(99));
  const made = await Promise.all(Array.from({ length: count }, () => make.message({ webhookId })));
  const ids = made.map(({ deliveries }) => String(deliveries[0]?.id));
  return Promise.all(ids.map((id) => make.deliveryOnce('exhausted', id)));
}

describe('Resend · POST /api/v1/webhooks/{id}/resend-failed', () => {
  const start = (id: string, body: object) =>
    posthorn.api.post(`/api/v1/webhooks/${id}/resend-failed`, body);
  const done = (id: string): Promise<ShownResend> =>
    eventually('done', async () => {
      const shown = dataOf<ShownResend>(await posthorn.api.get(`/api/v1/resends/${id}`));
      return shown.status === 'done' ? shown : null;
    });

  it('runs once at a time for a webhook', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [first] = await exhausted(webhookId);
    // The endpoint keeps the resend under way until a second one was asked for.
    let answer: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    receiver.answerWith((response) => {
      void asked.then(() => response.writeHead(200).end());
    });
    const since = first?.createdAt;
    const { id } = dataOf<ShownResend>(await start(webhookId, { since }), 202);
    expectFailure(await start(webhookId, { since }), 409, 'resend_running');
    answer();
    await done(id);
    dataOf(await start(webhookId, { since }), 202);
  });

  it('resends each exhausted or cancelled delivery since that time, and shows its progress', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [before] = await exhausted(webhookId);
    const failed = await exhausted(webhookId, 3);
    await disable(webhookId, true);
    const { deliveries } = await make.message({ webhookId });
    const cancelled = String(deliveries[0]?.id);
    // Until the dispatcher has read its record, only the message shows that it is cancelled.
    await eventually('the cancelled delivery', async () => {
      const listed = await posthorn.api.get(
        `/api/v1/webhook-messages?status=cancelled&webhookId=${webhookId}`,
      );
      return dataOf<object[]>(listed).length > 0;
    });
    await disable(webhookId, false);
    receiver.answerWith((response, { headers }, nth) => {
      const isLast = headers['webhook-id'] === failed.at(-1)?.messageId;
      response.writeHead(isLast && nth > 2 ? 500 : 200).end();
    });
    const [since = ''] = failed.map(({ createdAt }) => createdAt).sort();
    const path = `/api/v1/webhooks/${webhookId}/resend-failed/estimate?since=${since}`;
    expect(dataOf(await posthorn.api.get(path))).toEqual({ total: 4 });
    const started = dataOf<ShownResend>(await start(webhookId, { since }), 202);
    expect(started).toMatchObject({ id: anId('rsnd'), status: 'running' });
    expect(await done(started.id)).toEqual({
      id: started.id,
      appId: null,
      webhookId,
      outcome: null,
      status: 'done',
      abortAskedAt: null,
      total: 4,
      succeeded: 3,
      failed: 1,
      createdAt: aTime,
      updatedAt: aTime,
    });
    const statuses = await Promise.all(
      [...failed.map(({ id }) => id), cancelled].map(
        async (id) => (await make.delivery(id)).status,
      ),
    );
    expect(statuses).toEqual(['delivered', 'delivered', 'exhausted', 'delivered']);
    expect(await make.delivery(String(before?.id))).toMatchObject({ attemptCount: 2 });
  });

  it('with an outcome resends only what failed with it last', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [other] = await exhausted(webhookId);
    receiver.answerWith((response) => response.writeHead(404).end());
    const { deliveries } = await make.message({ webhookId });
    const missing = await make.deliveryOnce('exhausted', String(deliveries[0]?.id));
    receiver.answerWith(OK);
    const since = other?.createdAt;
    const asked = { since, outcome: 'http_4xx' };
    const started = dataOf<ShownResend>(await start(webhookId, asked), 202);
    expect(started).toMatchObject({ outcome: 'http_4xx', total: 2 });
    expect(await done(started.id)).toMatchObject({ total: 1, succeeded: 1, failed: 0 });
    expect(await make.delivery(missing.id)).toMatchObject({ status: 'delivered' });
    expect(await make.delivery(String(other?.id))).toMatchObject({ status: 'exhausted' });
  });

  it('takes until, and includes a delivery of exactly that time', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [first] = await exhausted(webhookId);
    await exhausted(webhookId);
    receiver.answerWith(OK);
    const span = { since: first?.createdAt, until: first?.createdAt };
    const { id } = dataOf<ShownResend>(await start(webhookId, span), 202);
    expect(await done(id)).toMatchObject({ total: 1, succeeded: 1, failed: 0 });
  });

  it('started several times at once makes no more attempts than resends were accepted, and all of these end', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const failed = await exhausted(webhookId, 3);
    const [since = ''] = failed.map(({ createdAt }) => createdAt).sort();
    const answers = await Promise.all([1, 2, 3].map(() => start(webhookId, { since })));
    const accepted = answers.filter(({ status }) => status === 202);
    for (const answer of answers.filter(({ status }) => status !== 202)) {
      expectFailure(answer, 409, 'resend_running');
    }
    for (const answer of accepted) await done(dataOf<ShownResend>(answer, 202).id);
    for (const { id, attemptCount } of failed) {
      const more = (await make.delivery(id)).attemptCount - attemptCount;
      expect(more).toBeGreaterThanOrEqual(1);
      expect(more).toBeLessThanOrEqual(accepted.length);
    }
  });

  it('is refused without since, with until before since, and for an unknown owner', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    const since = '2026-01-02T00:00:00.000Z';
    expectInvalid(await start(id, {}), 'since');
    expectInvalid(await start(id, { since: 'yesterday' }), 'since');
    expectInvalid(await start(id, { since, until: '2026-01-01T00:00:00.000Z' }), 'until');
    expectInvalid(await start(id, { since, outcome: 'success' }), 'outcome');
    expectNotFound(await start('wh_unknown', { since }));
    expectNotFound(await posthorn.api.get(`/api/v1/resends/rsnd_${'0'.repeat(26)}`));
  });
});
