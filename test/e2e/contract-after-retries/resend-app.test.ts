import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createCompany } from '../../support/process/companies.ts';
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
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
} from '../../support/api/resources.ts';

interface ShownResend {
  id: string;
  status: string;
}

const SINCE = '2026-01-02T00:00:00.000Z';

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

/** Sends one message that fails; returns its deliveries, all exhausted. */
async function exhausted(address: object): Promise<ShownDelivery[]> {
  receiver.answerWith(failing(99));
  const { deliveries } = await make.message(address);
  return Promise.all(deliveries.map(({ id }) => make.deliveryOnce('exhausted', id)));
}

const statusOf = async ({ id }: ShownDelivery) => (await make.delivery(id)).status;

describe('Resend · POST /api/v1/apps/{id}/resend-failed', () => {
  const start = (id: string, body: object) =>
    posthorn.api.post(`/api/v1/apps/${id}/resend-failed`, body);
  const done = (id: string): Promise<ShownResend> =>
    eventually('done', async () => {
      const shown = dataOf<ShownResend>(await posthorn.api.get(`/api/v1/resends/${id}`));
      return shown.status === 'done' ? shown : null;
    });

  it('resends the failed deliveries of every webhook of the app, and nothing else', async () => {
    const { id: projectId } = await make.project();
    const { id: appId } = await make.app({ projectId });
    const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
    await make.webhook({ url: receiver.url, appId });
    const { id: elsewhere } = await make.webhook({ url: receiver.url });
    const global = { url: receiver.url, projectId, environmentId: 'live' };
    const { id: globalId } = await make.webhook(global);
    const mine = [...(await exhausted({ appId })), ...(await exhausted({ webhookId }))];
    const others = [
      ...(await exhausted({ webhookId: elsewhere })),
      ...(await exhausted({ webhookId: globalId })),
    ];
    receiver.answerWith((response) => response.writeHead(200).end());
    const started = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    expect(started).toMatchObject({ id: anId('rsnd'), status: 'running', total: 3 });
    expect(await done(started.id)).toEqual({
      id: started.id,
      appId,
      webhookId: null,
      outcome: null,
      status: 'done',
      abortAskedAt: null,
      total: 3,
      succeeded: 3,
      failed: 0,
      createdAt: aTime,
      updatedAt: aTime,
    });
    expect(await Promise.all(mine.map(statusOf))).toEqual(['delivered', 'delivered', 'delivered']);
    expect(await Promise.all(others.map(statusOf))).toEqual(['exhausted', 'exhausted']);
    const { attempts } = await make.delivery(String(mine[0]?.id));
    expect(attempts.at(-1)).toMatchObject({ number: 3, resend: true, outcome: 'success' });
  });

  it('leaves out the disabled webhooks of the app and resends to the others', async () => {
    const { id: appId } = await make.app();
    const { id: disabledId } = await make.webhook({ url: receiver.url, appId });
    await make.webhook({ url: receiver.url, appId });
    const failed = await exhausted({ appId });
    dataOf(await posthorn.api.put(`/webhooks/${disabledId}`, { disabled: true }));
    receiver.answerWith((response) => response.writeHead(200).end());
    const { id } = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    expect(await done(id)).toMatchObject({ total: 1, succeeded: 1, failed: 0 });
    for (const delivery of failed) {
      const isDisabled = delivery.webhookId === disabledId;
      expect(await statusOf(delivery)).toBe(isDisabled ? 'exhausted' : 'delivered');
    }
  });

  it('takes until, and includes a delivery of exactly that time', async () => {
    const { id: appId } = await make.app();
    await make.webhook({ url: receiver.url, appId });
    const [first] = await exhausted({ appId });
    await exhausted({ appId });
    receiver.answerWith(failing(99));
    const span = { since: first?.createdAt, until: first?.createdAt };
    const { id } = dataOf<ShownResend>(await start(appId, span), 202);
    expect(await done(id)).toMatchObject({ total: 1, succeeded: 0, failed: 1 });
  });

  it('runs once at a time for an app: a second one is refused, and accepted after the first', async () => {
    const { id: appId } = await make.app();
    await make.webhook({ url: receiver.url, appId });
    await exhausted({ appId });
    const held: (() => void)[] = [];
    receiver.answerWith((response) => held.push(() => response.writeHead(200).end()));
    const { id } = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    expectFailure(await start(appId, { since: SINCE }), 409, 'resend_running');
    await eventually('the attempt', () => held.length > 0);
    expectFailure(await start(appId, { since: SINCE }), 409, 'resend_running');
    for (const release of held) release();
    await done(id);
    const { id: next } = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    expect(await done(next)).toMatchObject({ total: 0, succeeded: 0, failed: 0 });
  });

  it('starts once when many requests ask for it at the same time', async () => {
    const { id: appId } = await make.app();
    await make.webhook({ url: receiver.url, appId });
    await exhausted({ appId });
    const held: (() => void)[] = [];
    receiver.answerWith((response) => held.push(() => response.writeHead(200).end()));
    const answers = await Promise.all([1, 2, 3, 4].map(() => start(appId, { since: SINCE })));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
    await eventually('the attempt', () => held.length > 0);
    for (const release of held) release();
    const accepted = answers.find(({ status }) => status === 202);
    const { id } = accepted?.body.data as ShownResend;
    expect(await done(id)).toMatchObject({ total: 1, succeeded: 1 });
  });

  it('is refused without since, with until before since, and for an unknown owner', async () => {
    const { id } = await make.app();
    const until = '2026-01-01T00:00:00.000Z';
    expectInvalid(await start(id, {}), 'since');
    expectInvalid(await start(id, { since: 'yesterday', until: 'now' }), 'since', 'until');
    expectInvalid(await start(id, { since: SINCE, until }), 'until');
    expectInvalid(await start(id, { since: SINCE, webhookId: 'wh_1' }), 'webhookId');
    expectNotFound(await start('app_unknown', { since: SINCE }));
  });

  it('returns the same for the app of another company as for an unknown one', async () => {
    const { api } = await createCompany(posthorn, 'Other');
    const { id: theirs } = await createResources(api).app();
    const [answer, expected] = [
      await start(theirs, { since: SINCE }),
      await start(`app_${'0'.repeat(26)}`, { since: SINCE }),
    ];
    expectNotFound(answer);
    const { requestId } = expected.body;
    expect({ ...answer.body, requestId }).toEqual(expected.body);
  });

  it('does not show its parts as resends', async () => {
    const { id: appId } = await make.app();
    const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
    await exhausted({ appId });
    const held: (() => void)[] = [];
    receiver.answerWith((response) => held.push(() => response.writeHead(200).end()));
    const { id } = dataOf<ShownResend>(await start(appId, { since: SINCE }), 202);
    await eventually('the attempt', () => held.length > 0);
    const part = encodeURIComponent(`${id}/${webhookId}`);
    expectNotFound(await posthorn.api.get(`/api/v1/resends/${part}`));
    for (const release of held) release();
    await done(id);
  });
});
