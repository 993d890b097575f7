import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { ShownDelivery, ShownMessage } from '../../support/api/resources.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { type Answer, failing } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

/** Deliveries that have failed once stay pending here: the next attempt is an hour later. */

interface Listed extends Omit<ShownDelivery, 'attempts'> {
  appId: string | null;
  eventType: string | null;
  lastOutcome: string | null;
}

const OK: Answer = (response) => response.writeHead(200).end('ok');

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();

afterEach(() => {
  receiver.answerWith(OK);
});

const list = (query = ''): Promise<ApiAnswer> => posthorn.api.get(`/api/v1/deliveries?${query}`);
const cancel = (id: string): Promise<ApiAnswer> =>
  posthorn.api.post(`/api/v1/deliveries/${id}/cancel`, undefined);
const cancelPending = (webhookId: string, body?: object): Promise<ApiAnswer> =>
  posthorn.api.post(`/api/v1/webhooks/${webhookId}/cancel-pending`, body);

const firstIdOf = ({ deliveries }: ShownMessage): string => String(deliveries[0]?.id);

/** Sends messages and waits until each has its first attempt. */
async function attempted(webhookId: string, count: number, fields: object = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const id = firstIdOf(await make.message({ webhookId, ...fields }));
    await eventually('the first attempt', async () => (await make.delivery(id)).attemptCount === 1);
    ids.push(id);
  }
  return ids;
}

async function readAll(query: string): Promise<Listed[]> {
  const found: Listed[] = [];
  for (let cursor = ''; ;) {
    const answer = await list(`${query}${cursor && `&cursor=${cursor}`}`);
    found.push(...dataOf<Listed[]>(answer));
    cursor = answer.body.nextCursor ?? '';
    if (cursor === '') return found;
  }
}

const idsOf = (listed: readonly { id: string }[]): string[] => listed.map(({ id }) => id);

describe('Deliveries · GET /api/v1/deliveries', () => {
  let appId: string;
  let webhookIds: string[];
  /** Of two webhooks of the app, newest first: pending ones, and delivered ones. */
  let pending: string[];
  let delivered: string[];
  let since: string;

  beforeAll(async () => {
    ({ id: appId } = await make.app());
    const webhooks = [
      await make.webhook({ url: `${receiver.url}/1`, appId }),
      await make.webhook({ url: `${receiver.url}/2`, appId }),
    ];
    webhookIds = idsOf(webhooks);
    receiver.answerWith(failing(99));
    const failed: ShownMessage[] = [];
    for (const eventType of ['order.paid', 'order.sent', 'order.paid']) {
      failed.push(await make.message({ appId, eventType }));
    }
    since = String(failed[0]?.createdAt);
    pending = failed.flatMap(({ deliveries }) => idsOf(deliveries).sort()).reverse();
    for (const id of pending) {
      await eventually('an attempt', async () => (await make.delivery(id)).attemptCount === 1);
    }
    receiver.answerWith(OK);
    const good = await make.message({ appId, eventType: 'order.paid' });
    delivered = idsOf(good.deliveries).sort().reverse();
    for (const id of delivered) await make.deliveryOnce('delivered', id);
  });

  it('lists those of a status, the newest message first, with event type and last outcome', async () => {
    const found = dataOf<Listed[]>(await list(`status=pending&appId=${appId}`));
    expect(idsOf(found)).toEqual(pending);
    expect(found[0]).toEqual({
      id: pending[0],
      messageId: anId('msg'),
      webhookId: expect.stringMatching(new RegExp(webhookIds.join('|'))),
      appId,
      eventType: 'order.paid',
      status: 'pending',
      reason: null,
      attemptCount: 1,
      nextAttemptAt: aTime,
      waiting: null,
      waitingSince: null,
      lastOutcome: 'http_5xx',
      createdAt: aTime,
      updatedAt: aTime,
    });
  });

  it.each([['status=pending'], ['status=pending,cancelled'], ['status=delivered'], ['']])(
    'pages through them, also within one message: %s',
    async (status) => {
      const query = `${status}&appId=${appId}`;
      const expected = {
        'status=pending': pending,
        'status=pending,cancelled': pending,
        'status=delivered': delivered,
        '': [...delivered, ...pending],
      }[status];
      expect(idsOf(await readAll(`${query}&limit=1`))).toEqual(expected);
      expect(idsOf(await readAll(`${query}&limit=3`))).toEqual(expected);
    },
  );

  it('filters by webhook, event type and time', async () => {
    const [first = ''] = webhookIds;
    for (const status of ['status=pending&', '']) {
      const query = `${status}webhookId=${first}&limit=2`;
      const found = await readAll(query);
      expect(found.map(({ webhookId }) => webhookId)).toEqual(found.map(() => first));
      expect(found).toHaveLength(status === '' ? 4 : 3);
      const paid = await readAll(`${query}&eventType=order.paid`);
      expect(paid).toHaveLength(status === '' ? 3 : 2);
      const until = new Date(Date.parse(since)).toISOString();
      const oldest = await readAll(`${query}&since=${since}&until=${until}`);
      expect(idsOf(oldest)).toEqual([found.at(-1)?.id]);
    }
  });

  it('shows nothing of other companies', async () => {
    const other = await joinShared('contract');
    try {
      for (const query of [
        'status=pending',
        `appId=${appId}`,
        `webhookId=${String(webhookIds[0])}`,
      ]) {
        expect(dataOf(await other.api.get(`/api/v1/deliveries?${query}`))).toEqual([]);
      }
    } finally {
      await other.stop();
    }
  });

  it('refuses a wrong status, cursor and time, and a reason of another status', async () => {
    expectInvalid(await list('status=failed&cursor=x&since=now'), 'status', 'cursor', 'since');
    expectInvalid(await list('status=pending,&waiting=nothing'), 'status', 'waiting');
    expectInvalid(await list('status=pending&reason=webhook_deleted'), 'reason');
    expectInvalid(await list('status=exhausted,cancelled&waiting=hold'), 'waiting');
  });
});

describe('Cancel · POST /api/v1/deliveries/{id}/cancel', () => {
  it('ends a pending delivery, once', async () => {
    receiver.answerWith(failing(99));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [id = ''] = await attempted(webhookId, 1);
    const cancelled = { id, status: 'cancelled', reason: 'cancelled_by_client', attemptCount: 1 };
    expect(dataOf(await cancel(id))).toMatchObject({ ...cancelled, nextAttemptAt: null });
    expect(await make.delivery(id)).toMatchObject(cancelled);
    expectFailure(await cancel(id), 409, 'delivery_final');
    const found = dataOf(await list(`webhookId=${webhookId}&reason=cancelled_by_client`));
    expect(found).toMatchObject([{ id, reason: 'cancelled_by_client' }]);
    expect(dataOf(await list(`webhookId=${webhookId}&reason=webhook_disabled`))).toEqual([]);
  });

  it('does not stop the attempt under way, whose success delivers', async () => {
    let respond = (): void => undefined;
    const held = new Promise<void>((resolve) => (respond = resolve));
    receiver.answerWith((response) => void held.then(() => response.writeHead(200).end('ok')));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const message = await make.message({ webhookId });
    const id = firstIdOf(message);
    await eventually('the request', () => receiver.of(message.id).length === 1);
    expect(dataOf(await cancel(id))).toMatchObject({ status: 'cancelled', attemptCount: 0 });
    respond();
    expect(await make.deliveryOnce('delivered', id)).toMatchObject({ reason: null });
    expectFailure(await cancel(id), 409, 'delivery_final');
  });

  it('is 404 for an unknown delivery', async () => {
    expectNotFound(await cancel(`dlv_${'0'.repeat(26)}`));
  });
});

describe('Cancel · POST /api/v1/webhooks/{id}/cancel-pending', () => {
  it('cancels what is pending, recorded or not, and nothing that is sent later', async () => {
    receiver.answerWith(failing(99));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    // More failures than the circuit allows: the others are deferred before their first attempt.
    const messages = await Promise.all(
      Array.from({ length: 40 }, () => make.message({ webhookId })),
    );
    const ids = messages.map(firstIdOf);
    const answer = dataOf<{ cancelBefore: string }>(await cancelPending(webhookId), 202);
    expect(answer).toEqual({ cancelBefore: aTime });
    const cancelled = { status: 'cancelled', reason: 'cancelled_by_client', nextAttemptAt: null };
    for (const id of ids) expect(await make.delivery(id)).toMatchObject(cancelled);
    const ofWebhook = await posthorn.api.get(
      `/api/v1/webhook-messages?webhookId=${webhookId}&deliveryStatus=cancelled&limit=100`,
    );
    expect(dataOf<unknown[]>(ofWebhook)).toHaveLength(40);
    await eventually('all in the list', async () => {
      const query = `webhookId=${webhookId}&reason=cancelled_by_client&limit=100`;
      return (await readAll(query)).length === 40;
    });
    expect(await readAll(`webhookId=${webhookId}&status=pending`)).toEqual([]);
    // Its circuit is open.
    const later = firstIdOf(await make.message({ webhookId }));
    expect(await make.delivery(later)).toMatchObject({ status: 'pending' });
  });

  it('keeps the later of two times, and spares what was created at the time or later', async () => {
    receiver.answerWith(failing(99));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [old = '', young = ''] = await attempted(webhookId, 2);
    const { createdAt: createdBefore } = await make.delivery(young);
    const cancelBefore = { cancelBefore: createdBefore };
    expect(dataOf(await cancelPending(webhookId, { createdBefore }), 202)).toEqual(cancelBefore);
    const earlier = new Date(0).toISOString();
    const repeated = await cancelPending(webhookId, { createdBefore: earlier });
    expect(dataOf(repeated, 202)).toEqual(cancelBefore);
    expect(await make.delivery(old)).toMatchObject({ status: 'cancelled' });
    expect(await make.delivery(young)).toMatchObject({ status: 'pending' });
  });

  it('leaves a cancelled delivery to be sent again at once', async () => {
    receiver.answerWith(failing(1));
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const [id = ''] = await attempted(webhookId, 1);
    dataOf(await cancelPending(webhookId), 202);
    const resent = await posthorn.api.post(`/api/v1/deliveries/${id}/resend`, undefined);
    expect(dataOf(resent)).toMatchObject({ id, status: 'cancelled' });
    expect(await make.deliveryOnce('delivered', id)).toMatchObject({ attemptCount: 2 });
  });

  it('refuses a time in the future and an unknown webhook', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const createdBefore = new Date(Date.now() + 3_600_000).toISOString();
    expectInvalid(await cancelPending(webhookId, { createdBefore }), 'createdBefore');
    expectNotFound(await cancelPending(`wh_${'0'.repeat(26)}`));
  });
});

describe('Replay · POST /api/v1/webhooks/{id}/replay-missing', () => {
  const MINUTE_MS = 60_000;
  const since = new Date(Date.now() - MINUTE_MS).toISOString();

  const replay = (webhookId: string, body: object = { since }): Promise<ApiAnswer> =>
    posthorn.api.post(`/api/v1/webhooks/${webhookId}/replay-missing`, body);
  const estimate = (webhookId: string, query = `since=${since}`): Promise<ApiAnswer> =>
    posthorn.api.get(`/api/v1/webhooks/${webhookId}/replay-missing/estimate?${query}`);
  const ended = (id: string) =>
    eventually('the end of the replay', async () => {
      const shown = dataOf<{ status: string }>(await posthorn.api.get(`/api/v1/resends/${id}`));
      return shown.status === 'running' ? null : shown;
    });

  it('sends a new webhook what its app has sent before, once, and no other one', async () => {
    const { id: appId } = await make.app();
    const old = await make.webhook({ url: `${receiver.url}/old`, appId });
    const sent: ShownMessage[] = [];
    for (const eventType of ['order.paid', 'order.sent', 'order.paid']) {
      sent.push(await make.message({ appId, eventType }));
    }
    const alone = await make.message({ webhookId: old.id });
    for (const message of [...sent, alone])
      await make.deliveryOnce('delivered', firstIdOf(message));
    const added = await make.webhook({
      url: `${receiver.url}/added`,
      appId,
      eventTypes: ['order.paid'],
    });
    expect(dataOf(await estimate(added.id))).toEqual({ total: 2 });
    expect(dataOf(await estimate(added.id, `since=${since}&eventTypes=order.sent`))).toEqual({
      total: 0,
    });
    const started = dataOf<{ id: string }>(await replay(added.id), 202);
    expect(started).toMatchObject({ kind: 'replay', webhookId: added.id, total: 2, done: 0 });
    expect(await ended(started.id)).toMatchObject({
      status: 'done',
      total: 2,
      done: 2,
      skipped: 0,
    });
    const wanted = sent.filter((_, n) => n !== 1).map(({ id }) => id);
    for (const id of wanted) {
      const shown = dataOf<ShownMessage>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));
      const own = shown.deliveries.find(({ webhookId }) => webhookId === added.id);
      const delivery = await make.deliveryOnce('delivered', String(own?.id));
      expect(delivery).toMatchObject({ messageId: id, attemptCount: 1 });
      const deliveries = await posthorn.api.get(`/api/v1/webhook-messages/${id}/deliveries`);
      expect(dataOf(deliveries)).toHaveLength(2);
    }
    const path = '/hook/added';
    const got = () => receiver.received.filter((each) => each.path === path);
    // Both were under way together.
    expect(got()).toHaveLength(wanted.length);
    expect(new Set(got().map(({ headers }) => headers['webhook-id']))).toEqual(new Set(wanted));
    const again = dataOf<{ id: string }>(await replay(added.id), 202);
    expect(await ended(again.id)).toMatchObject({ status: 'done', total: 0 });
    expect(got()).toHaveLength(2);
    for (const list of ['webhook-messages', 'deliveries']) {
      const found = await posthorn.api.get(`/api/v1/${list}?webhookId=${added.id}`);
      expect(dataOf(found)).toHaveLength(2);
    }
    expect(receiver.received.filter(({ path: each }) => each === '/hook/old')).toHaveLength(4);
  });

  it('makes deliveries that can be cancelled like others, and retried', async () => {
    const { id: appId } = await make.app();
    const { id: messageId } = await make.message({ appId });
    const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
    receiver.answerWith(failing(99));
    // What it has cancelled before counts for older deliveries only.
    dataOf(await cancelPending(webhookId), 202);
    const { id } = dataOf<{ id: string }>(await replay(webhookId), 202);
    expect(await ended(id)).toMatchObject({ status: 'done', done: 1 });
    const pending = await eventually('the first attempt', async () => {
      const [found] = await readAll(`webhookId=${webhookId}&status=pending`);
      return found?.attemptCount === 1 ? found : null;
    });
    expect(pending).toMatchObject({ messageId, nextAttemptAt: aTime });
    dataOf(await cancelPending(webhookId), 202);
    expect(await make.delivery(pending.id)).toMatchObject({ reason: 'cancelled_by_client' });
  });

  it('gives a message without a target one', async () => {
    const { id: appId } = await make.app();
    const none = await make.message({ appId, eventType: 'order.paid' });
    expect(none).toMatchObject({ deliveries: [], noTargetReason: 'no_webhook' });
    const listed = await posthorn.api.get(
      `/api/v1/webhook-messages?appId=${appId}&status=no_target`,
    );
    expect(dataOf<object[]>(listed)).toMatchObject([{ id: none.id, status: 'no_target' }]);
    const { id: webhookId } = await make.webhook({
      url: receiver.url,
      appId,
      eventTypes: ['order.sent'],
    });
    const other = await make.message({ appId, eventType: 'order.paid' });
    expect(other).toMatchObject({ deliveries: [], noTargetReason: 'event_type' });
    const shown = async (id: string) =>
      dataOf<ShownMessage>(await posthorn.api.get(`/api/v1/webhook-messages/${id}`));
    expect(await shown(other.id)).toMatchObject({ noTargetReason: 'event_type' });
    const sent = await make.message({ appId, eventType: 'order.sent' });
    expect(sent).toMatchObject({ noTargetReason: null });
    await posthorn.api.put(`/webhooks/${webhookId}`, { eventTypes: [] });
    const { id } = dataOf<{ id: string }>(await replay(webhookId), 202);
    expect(await ended(id)).toMatchObject({ done: 2 });
    expect(await shown(none.id)).toMatchObject({
      noTargetReason: null,
      deliveries: [{ webhookId }],
    });
  });

  it('is refused for a disabled, a global and an unknown webhook, and a wrong time', async () => {
    const { id: disabled } = await make.webhook({ url: receiver.url, disabled: true });
    expectFailure(await replay(disabled), 409, 'webhook_disabled');
    const { id: projectId } = await make.project();
    const global = { url: receiver.url, projectId, environmentId: 'production' };
    const { id: globalId } = await make.webhook(global);
    expectInvalid(await replay(globalId), 'webhookId');
    expectNotFound(await estimate(`wh_${'0'.repeat(26)}`));
    expectInvalid(await replay(disabled, { since, until: new Date(0).toISOString() }), 'until');
  });
});
