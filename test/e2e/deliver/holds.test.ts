import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { killHard, type ServiceProcess } from '../../support/process/posthorn.ts';
import { joinWithGatewayProcess, type OwnGateway } from '../../support/process/shared-posthorn.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { CLOCK_MS } from '../../support/time/clocks.ts';
import { eventually } from '../../support/time/eventually.ts';

interface Shown {
  held: { since: string; until: string | null; reason: string | null; by: string } | null;
  waiting: number;
}

interface ShownDelivery {
  status: string;
  reason: string | null;
  waiting: string | null;
  waitingSince: string | null;
  nextAttemptAt: string | null;
  attemptCount: number;
  attempts: { number: number; createdAt: string }[];
}

let posthorn: OwnGateway<ServiceProcess>;
let api: ApiClient;
let make: Resources;
const receiver = useReceiver();

beforeAll(async () => {
  posthorn = await joinWithGatewayProcess('retries');
  ({ api } = posthorn);
  make = createResources(api);
}, 120_000);

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answerWith((response) => response.writeHead(200).end('ok'));
});

afterAll(async () => {
  await posthorn.stop();
});

const webhookOf = async (id: string): Promise<Shown> => dataOf(await api.get(`/webhooks/${id}`));
const deliveryOf = async (id: string): Promise<ShownDelivery> =>
  dataOf(await api.get(`/api/v1/deliveries/${id}`));

async function hold(path: string, body: object = {}): Promise<Shown> {
  return dataOf(await api.post(`/api/v1/${path}/hold`, body));
}

async function resume(path: string, body: object = {}): Promise<Shown> {
  return dataOf(await api.post(`/api/v1/${path}/resume`, body), 202);
}

async function sendTo(webhookId: string, count: number) {
  const sent: { messageId: string; deliveryId: string }[] = [];
  for (let n = 0; n < count; n += 1) sent.push(await api.send({ webhookId }, { n }));
  return sent;
}

const untilWaiting = (id: string, count: number): Promise<unknown> =>
  eventually(`${count} wait`, async () => (await webhookOf(id)).waiting === count);

const requestedIds = (): string[] =>
  receiver.received.map(({ headers }) => String(headers['webhook-id']));

/** Resolves with the deliveries once all are delivered. */
const untilDelivered = (ids: readonly string[]): Promise<ShownDelivery[]> =>
  eventually(`${ids.length} delivered`, async () => {
    const found = await Promise.all(ids.map(deliveryOf));
    return found.every(({ status }) => status === 'delivered') ? found : null;
  });
/** When the last attempt began. */
const startOf = ({ attempts }: ShownDelivery): number =>
  Date.parse(attempts.at(-1)?.createdAt ?? '');

describe('A webhook on hold', () => {
  it('gets nothing; resumed, it gets all that waited, oldest first and with their attempt numbers', async () => {
    const respond = receiver.hold();
    const { id } = await make.webhook({ url: receiver.url });
    const [retried] = await sendTo(id, 1);
    await eventually('the first attempt', () => receiver.received.length === 1);
    const shown = await hold(`webhooks/${id}`, { reason: 'maintenance' });
    expect(shown.held).toMatchObject({ until: null, reason: 'maintenance' });
    respond(500);
    const sent = await sendTo(id, 20);
    await untilWaiting(id, 21);
    expect(receiver.received).toHaveLength(1);
    expect(await deliveryOf(retried?.deliveryId ?? '')).toMatchObject({
      status: 'pending',
      waiting: 'hold',
      waitingSince: expect.any(String) as unknown,
      nextAttemptAt: null,
      attemptCount: 1,
    });

    respond(200);
    // One after the other. Requests under way together may arrive in any order.
    expect((await resume(`webhooks/${id}`, { ratePerSecond: 10 })).held).toBeNull();
    await eventually('all of it', () => receiver.received.length === 22);
    const all = [retried, ...sent].map((each) => each ?? { messageId: '', deliveryId: '' });
    expect(new Set(requestedIds().slice(1))).toEqual(new Set(all.map((each) => each.messageId)));
    const [delivered, ...others] = await untilDelivered(all.map(({ deliveryId }) => deliveryId));
    expect(delivered).toMatchObject({ waiting: null, waitingSince: null, attemptCount: 2 });
    expect(delivered?.attempts.map(({ number }) => number)).toEqual([1, 2]);
    const startedAt = delivered ? startOf(delivered) : NaN;
    expect(Math.min(...others.map(startOf))).toBeGreaterThan(startedAt);
    await untilWaiting(id, 0);
    expect(await webhookOf(id)).toMatchObject({ held: null });
  });

  it('gets the trace of a message that has waited', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${webhookId}`);
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const message = { webhookId, payload: {} };
    dataOf(await api.post('/webhook-messages', message, { traceparent }), 202);
    await untilWaiting(webhookId, 1);
    await resume(`webhooks/${webhookId}`);
    await eventually('the message', () => receiver.received.length === 1);
    expect(receiver.received[0]?.headers.traceparent).toBe(traceparent);
  });

  it('gets a test message all the same', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${id}`);
    dataOf(await api.post(`/api/v1/webhooks/${id}/test`, {}), 202);
    await eventually('the test', () => receiver.received.length === 1);
  });

  it('keeps since when it is, and gets another end and reason, when it is put on hold again', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    const { held: first } = await hold(`webhooks/${id}`, { reason: 'one' });
    const until = new Date(Date.now() + 3_600_000).toISOString();
    const { held } = await hold(`webhooks/${id}`, { until });
    expect(held).toEqual({ ...first, until, reason: null });
    expect((await hold(`webhooks/${id}`, { until })).held).toEqual(held);
    expect((await hold(`webhooks/${id}`)).held).toEqual(held);
    expect((await hold(`webhooks/${id}`, { until: null })).held).toEqual({ ...held, until: null });
  });

  it.each([
    ['in the past', -1_000],
    ['after its deliveries have expired', 29.5 * 86_400_000],
  ])('refuses an end %s', async (_when, ms) => {
    const { id } = await make.webhook({ url: receiver.url });
    const until = new Date(Date.now() + ms).toISOString();
    expectInvalid(await api.post(`/api/v1/webhooks/${id}/hold`, { until }), 'until');
    expect(await webhookOf(id)).toMatchObject({ held: null });
  });

  it('goes on by itself when its time is over', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    const until = new Date(Date.now() + 4_000).toISOString();
    await hold(`webhooks/${id}`, { until });
    const sent = await sendTo(id, 3);
    const delivered = await untilDelivered(sent.map(({ deliveryId }) => deliveryId));
    expect(receiver.received).toHaveLength(3);
    const firstMs = Math.min(...delivered.map(startOf));
    expect(firstMs).toBeGreaterThan(Date.parse(until) - CLOCK_MS);
    await untilWaiting(id, 0);
    expect(await webhookOf(id)).toMatchObject({ held: null });
  });

  it('has what waits cancelled when it is disabled', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${id}`);
    const [sent] = await sendTo(id, 2);
    await untilWaiting(id, 2);
    dataOf(await api.put(`/webhooks/${id}`, { disabled: true }));
    await eventually('cancelled', async () => {
      const { status, reason } = await deliveryOf(sent?.deliveryId ?? '');
      return status === 'cancelled' && reason === 'webhook_disabled';
    });
    expect(receiver.received).toEqual([]);
  });

  it('shows everywhere within seconds that what waits has expired, and does not wait for the end of the hold', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${id}`);
    const [kept] = await sendTo(id, 1);
    await untilWaiting(id, 1);
    const expiresAt = new Date(Date.now() + 5_000).toISOString();
    const message = await make.message({ webhookId: id, expiresAt });
    await untilWaiting(id, 2);
    await untilWaiting(id, 1);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt) - 1_000);
    const deliveryId = message.deliveries[0]?.id ?? '';
    const expired = { status: 'cancelled', reason: 'expired', waiting: null };
    expect(await deliveryOf(deliveryId)).toMatchObject(expired);
    const list = async (path: string): Promise<object[]> => dataOf(await api.get(path));
    const deliveries = `/api/v1/deliveries?webhookId=${id}`;
    for (const filter of ['status=cancelled', 'reason=expired']) {
      expect(await list(`${deliveries}&${filter}`)).toMatchObject([{ id: deliveryId, ...expired }]);
    }
    expect(await list(`${deliveries}&status=pending`)).toMatchObject([{ id: kept?.deliveryId }]);
    const messages = `/api/v1/webhook-messages?webhookId=${id}`;
    expect(await list(`${messages}&status=cancelled`)).toMatchObject([
      { id: message.id, status: 'cancelled', deliveries: [{ status: 'cancelled' }] },
    ]);
    expect((await webhookOf(id)).held).not.toBeNull();
    await resume(`webhooks/${id}`);
    await eventually('the other one', () => receiver.received.length > 0);
    expect(requestedIds()).toEqual([kept?.messageId]);
  });

  it('requests nothing of what a client has cancelled or erased meanwhile', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${id}`);
    const [cancelled, ...others] = await sendTo(id, 3);
    await untilWaiting(id, 3);
    dataOf(await api.post(`/api/v1/webhooks/${id}/cancel-pending`, {}), 202);
    const [erased, sent] = await sendTo(id, 2);
    const { messageId = '' } = erased ?? {};
    dataOf(await api.post(`/api/v1/webhook-messages/${messageId}/erase-payload`, {}));
    await resume(`webhooks/${id}`);
    await eventually('the last one', () => receiver.received.length > 0);
    for (const each of [cancelled, ...others]) {
      const shown = await deliveryOf(each?.deliveryId ?? '');
      expect(shown).toMatchObject({ status: 'cancelled', reason: 'cancelled_by_client' });
    }
    const shown = await deliveryOf(erased?.deliveryId ?? '');
    expect(shown).toMatchObject({ status: 'cancelled', reason: 'payload_erased', waiting: null });
    await untilWaiting(id, 0);
    expect(requestedIds()).toEqual([sent?.messageId]);
  });

  it('makes a resend that was asked for meanwhile when it is resumed, and when it ends by itself', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${id}`);
    const sent = await sendTo(id, 2);
    await untilWaiting(id, 2);
    for (const { deliveryId } of sent)
      await api.post(`/api/v1/deliveries/${deliveryId}/cancel`, undefined);
    const [first, second] = sent.map(({ deliveryId }) => deliveryId);
    await api.post(`/api/v1/deliveries/${String(first)}/resend`, undefined);
    await resume(`webhooks/${id}`);
    await eventually('the first', () => requestedIds().includes(sent[0]?.messageId ?? ''));
    await hold(`webhooks/${id}`, { until: new Date(Date.now() + 4_000).toISOString() });
    await api.post(`/api/v1/deliveries/${String(second)}/resend`, undefined);
    await eventually('the second', () => requestedIds().includes(sent[1]?.messageId ?? ''));
    await eventually('no hold', async () => (await webhookOf(id)).held === null);
  });

  it('is released to its end although the gateway that resumed it is killed meanwhile', async () => {
    const { id } = await make.webhook({ url: receiver.url });
    await hold(`webhooks/${id}`);
    const sent = await sendTo(id, 30);
    await untilWaiting(id, 30);
    await resume(`webhooks/${id}`, { ratePerSecond: 5 });
    await eventually('some', () => receiver.received.length > 3);
    await killHard(posthorn.gateway);
    posthorn.gateway = await posthorn.startProcess('gateway', { PORT: posthorn.env.PORT ?? '' });
    await eventually('the others', () => new Set(requestedIds()).size === 30, 60_000);
    expect(new Set(requestedIds())).toEqual(new Set(sent.map(({ messageId }) => messageId)));
  }, 120_000);
});

describe('An app on hold', () => {
  it('holds all its webhooks; resumed, those with a hold of their own stay on hold', async () => {
    const { id: appId } = await make.app();
    const [one, two] = [
      await make.webhook({ appId, url: receiver.url }),
      await make.webhook({ appId, url: receiver.url }),
    ];
    await hold(`webhooks/${two.id}`);
    expect((await hold(`apps/${appId}`, { reason: 'weekend' })).held).toMatchObject({
      reason: 'weekend',
    });
    const later = await make.webhook({ appId, url: receiver.url });
    for (let n = 0; n < 5; n += 1) await api.send({ appId }, { n });
    for (const { id } of [one, two, later]) await untilWaiting(id, 5);
    expect(receiver.received).toEqual([]);
    const health = dataOf(await api.get(`/api/v1/webhooks/${later.id}/health`));
    expect(health).toMatchObject({ held: { reason: 'weekend' }, pausedUntil: null });
    expect((await resume(`apps/${appId}`)).held).toBeNull();
    await eventually('two of three', () => receiver.received.length === 10);
    expect(await webhookOf(two.id)).toMatchObject({ waiting: 5 });
    await resume(`webhooks/${two.id}`);
    await eventually('the third', () => receiver.received.length === 15);
    expect(receiver.received).toHaveLength(15);
  });
});
