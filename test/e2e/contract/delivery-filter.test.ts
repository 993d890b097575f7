import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';
import { createSessionClient, makePortalLink, openLink } from '../../support/api/session-client.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, type Receiver, startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

/** Deliveries that have failed once stay pending here: the next attempt is an hour later. */

interface Plan {
  deliveries: number;
  webhooks: number;
  isComplete: boolean;
}

interface ShownCancellation {
  id: string;
  status: string;
  cancelled: number;
}

interface ShownResend {
  id: string;
  status: string;
  succeeded: number;
  failed: number;
}

type Fields = Record<string, string>;

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

afterEach(() => {
  receiver.answerWith((response) => response.writeHead(200).end('ok'));
});

const plan = (what: 'cancel' | 'resend', filter: Fields, api = posthorn.api): Promise<ApiAnswer> =>
  api.get(`/api/v1/deliveries/${what}/estimate?${new URLSearchParams(filter).toString()}`);
const cancel = (filter: object, api = posthorn.api): Promise<ApiAnswer> =>
  api.post('/api/v1/deliveries/cancel', filter);
const resend = (filter: object, api = posthorn.api): Promise<ApiAnswer> =>
  api.post('/api/v1/deliveries/resend', filter);

/** A cancellation looks through what is recorded once more ten seconds after it began. */
const ended = (id: string): Promise<ShownCancellation> =>
  eventually(
    'the end of the cancellation',
    async () => {
      const answer = await posthorn.api.get(`/api/v1/cancellations/${id}`);
      const shown = dataOf<ShownCancellation>(answer);
      return shown.status === 'done' ? shown : null;
    },
    120_000,
  );

const resent = (id: string): Promise<ShownResend> =>
  eventually('the end of the resend', async () => {
    const shown = dataOf<ShownResend>(await posthorn.api.get(`/api/v1/resends/${id}`));
    return shown.status === 'done' ? shown : null;
  });

const idsOf = (messages: readonly ShownMessage[]): string[] =>
  messages.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));

/** Resolves when each delivery has failed once, and waits an hour. */
async function failedOnce(messages: readonly ShownMessage[]): Promise<string[]> {
  const ids = idsOf(messages);
  for (const id of ids) {
    await eventually('an attempt', async () => (await make.delivery(id)).attemptCount === 1);
  }
  return ids;
}

const statusesOf = (ids: readonly string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await make.delivery(id)).status));

async function appWith(webhooks: number): Promise<{ appId: string; webhookIds: string[] }> {
  const { id: appId } = await make.app();
  const webhookIds: string[] = [];
  for (let n = 0; n < webhooks; n += 1) {
    webhookIds.push((await make.webhook({ appId, url: `${receiver.url}/${String(n)}` })).id);
  }
  return { appId, webhookIds };
}

describe('Cancel · POST /api/v1/deliveries/cancel', () => {
  it('cancels what its plan counts, and nothing else', async () => {
    receiver.answerWith(failing(99));
    const { appId } = await appWith(2);
    const other = await appWith(1);
    const send = (eventType: string, to = appId) => make.message({ appId: to, eventType });
    const wrong = [await send('order.wrong'), await send('order.wrong')];
    const elsewhere = [await send('order.wrong', other.appId)];
    const right = [await send('order.right')];
    const [wrongIds, otherIds] = [
      await failedOnce(wrong),
      await failedOnce([...elsewhere, ...right]),
    ];
    const filter = { appId, eventType: 'order.wrong' };
    const expected: Plan = { deliveries: 4, webhooks: 2, isComplete: true };
    expect(dataOf(await plan('cancel', filter))).toEqual(expected);
    const begun = dataOf<ShownCancellation>(await cancel(filter), 202);
    const nulls = { status: 'pending', waiting: null, reason: null, webhookId: null };
    const shownFilter = { ...nulls, since: null, until: null, ...filter };
    const shown = { id: anId('cncl'), status: 'running', filter: shownFilter, cancelled: 0 };
    expect(begun).toEqual({ ...shown, createdBefore: aTime, createdAt: aTime, updatedAt: aTime });
    const after = await send('order.wrong');
    await eventually('each is cancelled', async () =>
      (await statusesOf(wrongIds)).every((status) => status === 'cancelled'),
    );
    const [first = ''] = wrongIds;
    expect(await make.delivery(first)).toMatchObject({
      reason: 'cancelled_by_client',
      nextAttemptAt: null,
    });
    expect(await ended(begun.id)).toMatchObject({ status: 'done', cancelled: 4 });
    const untouched = [...otherIds, ...idsOf([after])];
    expect(await statusesOf(untouched)).toEqual(untouched.map(() => 'pending'));
    expect(dataOf(await plan('cancel', { ...filter, until: after.createdAt }))).toMatchObject({
      deliveries: 2,
    });
    const listed = dataOf<object[]>(await posthorn.api.get(`/api/v1/cancellations?appId=${appId}`));
    expect(listed).toMatchObject([{ id: begun.id, cancelled: 4 }]);
  }, 120_000);

  it('cancels what waits: on hold, for its time, and for the time of its message', async () => {
    const { appId, webhookIds } = await appWith(1);
    const [webhookId = ''] = webhookIds;
    const deliverAt = new Date(Date.now() + 3_600_000).toISOString();
    const timed = await make.message({ appId, deliverAt });
    receiver.answerWith(failing(99));
    const parked = await make.message({ appId });
    await failedOnce([parked]);
    dataOf(await posthorn.api.post(`/api/v1/webhooks/${webhookId}/hold`, {}));
    const held = await make.message({ appId });
    const waits = async (id: string): Promise<string | null> =>
      ((await make.delivery(id)) as { waiting?: string | null }).waiting ?? null;
    const [heldId = ''] = idsOf([held]);
    await eventually('it is on hold', async () => (await waits(heldId)) === 'hold');
    expect(dataOf(await plan('cancel', { appId, waiting: 'hold' }))).toMatchObject({
      deliveries: 1,
    });
    expect(dataOf(await plan('cancel', { appId }))).toMatchObject({ deliveries: 3 });
    const onHold = dataOf<ShownCancellation>(await cancel({ appId, waiting: 'hold' }), 202);
    expect(await ended(onHold.id)).toMatchObject({ cancelled: 1 });
    const ids = idsOf([timed, parked, held]);
    expect(await statusesOf(ids)).toEqual(['pending', 'pending', 'cancelled']);
    dataOf(await cancel({ webhookId }), 202);
    await eventually('all are cancelled', async () =>
      (await statusesOf(ids)).every((status) => status === 'cancelled'),
    );
    dataOf(await posthorn.api.post(`/api/v1/webhooks/${webhookId}/resume`, {}), 202);
  }, 120_000);

  it('keeps the answer to an attempt that is under way: a success delivers, a failure is the last', async () => {
    const { appId } = await appWith(1);
    const answer = receiver.hold();
    const count = receiver.received.length;
    const messages = [await make.message({ appId }), await make.message({ appId })];
    await eventually('both are under way', () => receiver.received.length === count + 2);
    const { id } = dataOf<ShownCancellation>(await cancel({ appId }), 202);
    const ids = idsOf(messages);
    await eventually('both are cancelled', async () =>
      (await statusesOf(ids)).every((status) => status === 'cancelled'),
    );
    answer(200);
    await eventually('both are delivered', async () =>
      (await statusesOf(ids)).every((status) => status === 'delivered'),
    );
    expect(await ended(id)).toMatchObject({ cancelled: 2 });
  }, 120_000);

  it('is done once for an idempotency key', async () => {
    const { appId } = await appWith(1);
    const headers = { 'idempotency-key': `cancel-${appId}` };
    const send = () => posthorn.api.post('/api/v1/deliveries/cancel', { appId }, headers);
    const [first, second] = [
      dataOf<ShownCancellation>(await send(), 202),
      dataOf<ShownCancellation>(await send(), 202),
    ];
    expect(second).toEqual(first);
    const path = `/api/v1/cancellations?appId=${appId}`;
    expect(dataOf(await posthorn.api.get(path))).toHaveLength(1);
  });

  it('is in the audit log with its filter', async () => {
    const { appId } = await appWith(1);
    const { id } = dataOf<ShownCancellation>(await cancel({ appId, eventType: 'a.b' }), 202);
    const [event] = await readAuditEvents(posthorn.api, { action: 'deliveries.cancelled' });
    expect(event).toMatchObject({ target: { kind: 'cancellation', id }, outcome: 'done' });
    expect(event?.changes).toEqual(
      expect.arrayContaining([
        { field: 'appId', before: null, after: appId },
        { field: 'eventType', before: null, after: 'a.b' },
      ]),
    );
  });

  it('is refused without a field besides the status, and for what is not pending', async () => {
    expectInvalid(await cancel({}), 'filter');
    expectInvalid(await cancel({ status: 'pending' }), 'filter');
    expectInvalid(await plan('cancel', {}), 'filter');
    expectInvalid(await cancel({ eventType: 'a', status: 'exhausted' }), 'status');
    expectInvalid(await cancel({ eventType: 'a', status: 'pending,delivered' }), 'status');
    expectInvalid(await cancel({ reason: 'gone' }), 'reason');
    expectInvalid(
      await cancel({ since: 'now', waiting: 'x', unknown: 1 }),
      'waiting',
      'since',
      'unknown',
    );
    const [since, until] = ['2026-01-02T00:00:00.000Z', '2026-01-01T00:00:00.000Z'];
    expectInvalid(await cancel({ since, until }), 'until');
    expectNotFound(await cancel({ appId: `app_${'0'.repeat(26)}` }));
    expectNotFound(await cancel({ webhookId: `wh_${'0'.repeat(26)}` }));
    expectNotFound(await posthorn.api.get(`/api/v1/cancellations/cncl_${'0'.repeat(26)}`));
  });
});

describe('Resend · POST /api/v1/deliveries/resend', () => {
  it('sends what its plan counts once, whatever its webhook, and nothing else', async () => {
    const { appId, webhookIds } = await appWith(3);
    receiver.answerWith(failing(99));
    const messages = [
      await make.message({ appId, eventType: 'order.lost' }),
      await make.message({ appId, eventType: 'order.lost' }),
      await make.message({ appId, eventType: 'order.kept' }),
    ];
    await failedOnce(messages);
    await ended(dataOf<ShownCancellation>(await cancel({ appId }), 202).id);
    const [, , disabled = ''] = webhookIds;
    dataOf(await posthorn.api.put(`/webhooks/${disabled}`, { disabled: true }));
    const filter = { appId, eventType: 'order.lost', reason: 'cancelled_by_client' };
    const planned = { deliveries: 4, webhooks: 2, isComplete: true };
    expect(dataOf(await plan('resend', filter))).toEqual(planned);
    receiver.answerWith((response) => response.writeHead(200).end());
    receiver.received.length = 0;
    const begun = dataOf<ShownResend>(await resend(filter), 202);
    expect(begun).toMatchObject({
      kind: 'resend',
      appId,
      webhookId: null,
      total: 4,
      filter: {
        status: 'cancelled',
        reason: 'cancelled_by_client',
        appId,
        eventType: 'order.lost',
      },
    });
    expect(await resent(begun.id)).toMatchObject({ total: 4, succeeded: 4, failed: 0 });
    const got = receiver.received.map(
      ({ headers, path }) => `${String(headers['webhook-id'])}${path}`,
    );
    const lost = messages.slice(0, 2).map(({ id }) => id);
    const expected = lost.flatMap((id) => [`${id}/hook/0`, `${id}/hook/1`]);
    expect(got.toSorted()).toEqual(expected.toSorted());
    expect(dataOf(await plan('resend', filter))).toEqual({
      ...planned,
      deliveries: 0,
      webhooks: 0,
    });
  }, 120_000);

  it('goes over all webhooks of the company, one at a time, and to one webhook', async () => {
    const [one, other] = [await appWith(1), await appWith(1)];
    receiver.answerWith(failing(99));
    const eventType = `company.${one.appId}`;
    const messages = [
      await make.message({ appId: one.appId, eventType }),
      await make.message({ appId: other.appId, eventType }),
      await make.message({ webhookId: other.webhookIds[0], eventType }),
    ];
    const ids = await failedOnce(messages);
    await ended(dataOf<ShownCancellation>(await cancel({ eventType }), 202).id);
    const answer = receiver.hold();
    const [webhookId = ''] = one.webhookIds;
    const ofOne = dataOf<ShownResend>(await resend({ webhookId, eventType }), 202);
    expect(ofOne).toMatchObject({ webhookId, appId: null, total: 1 });
    const ofAll = dataOf<ShownResend>(await resend({ eventType }), 202);
    expect(ofAll).toMatchObject({ webhookId: null, appId: null, total: 3 });
    expectFailure(await resend({ eventType: 'another' }), 409, 'resend_running');
    answer(200);
    expect(await resent(ofOne.id)).toMatchObject({ succeeded: 1, failed: 0 });
    const { succeeded, failed } = await resent(ofAll.id);
    // The one to both is sent by whichever marks it, and is not sent again after its success.
    expect([succeeded, failed]).toEqual([expect.any(Number), 0]);
    expect(await statusesOf(ids)).toEqual(ids.map(() => 'delivered'));
  }, 120_000);

  it('is refused without a field besides the status, and for what has not failed', async () => {
    expectInvalid(await resend({ status: 'exhausted,cancelled' }), 'filter');
    expectInvalid(await resend({ eventType: 'a', status: 'pending' }), 'status');
    expectInvalid(await resend({ waiting: 'hold' }), 'waiting');
    expectInvalid(await plan('resend', { status: 'exhausted' }), 'filter');
    expectNotFound(await resend({ appId: `app_${'0'.repeat(26)}` }));
    const { webhookIds } = await appWith(1);
    const [webhookId = ''] = webhookIds;
    dataOf(await posthorn.api.put(`/webhooks/${webhookId}`, { disabled: true }));
    expectFailure(await resend({ webhookId }), 409, 'webhook_disabled');
  });
});

describe('The rights to cancel and resend by a filter', () => {
  const keyWith = async (fields: object): Promise<ApiClient> => {
    const made = await posthorn.api.post('/api/v1/api-keys', { name: 'Key', ...fields });
    return createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
  };

  it('need the scope messages:write, and plans the scope read', async () => {
    const { appId } = await appWith(1);
    const [reader, sender] = [
      await keyWith({ scopes: ['read'] }),
      await keyWith({ scopes: ['messages:write'] }),
    ];
    expectFailure(await cancel({ appId }, reader), 403, 'insufficient_scope');
    expectFailure(await resend({ appId }, reader), 403, 'insufficient_scope');
    dataOf(await plan('cancel', { appId }, reader));
    expectFailure(await plan('cancel', { appId }, sender), 403, 'insufficient_scope');
    dataOf(await cancel({ appId }, sender), 202);
  });

  it('reach no other company, and no other app of a key of one app', async () => {
    receiver.answerWith(failing(99));
    const eventType = `rights.${String(Date.now())}`;
    const [own, foreign] = [await appWith(1), await appWith(1)];
    const messages = [
      await make.message({ appId: own.appId, eventType }),
      await make.message({ appId: foreign.appId, eventType }),
    ];
    const ids = await failedOnce(messages);
    const stranger = await joinShared('contract');
    try {
      expect(dataOf(await plan('cancel', { eventType }, stranger.api))).toMatchObject({
        deliveries: 0,
      });
      dataOf(await cancel({ eventType }, stranger.api), 202);
      expectNotFound(await cancel({ appId: own.appId }, stranger.api));
    } finally {
      await stranger.stop();
    }
    const key = await keyWith({ appId: own.appId });
    expectNotFound(await cancel({ appId: foreign.appId }, key));
    expectInvalid(await cancel({}, key), 'filter');
    expect(dataOf(await plan('cancel', { eventType }, key))).toMatchObject({ deliveries: 1 });
    const { id } = dataOf<ShownCancellation>(await cancel({ eventType }, key), 202);
    dataOf(await key.get(`/api/v1/cancellations/${id}`));
    expect(await ended(id)).toMatchObject({ cancelled: 1 });
    expect(await statusesOf(ids)).toEqual(['cancelled', 'pending']);
    const ofCompany = dataOf<ShownCancellation>(await cancel({ eventType }), 202);
    expectNotFound(await key.get(`/api/v1/cancellations/${ofCompany.id}`));
  }, 120_000);

  it('are the capabilities controlDeliveries and resend of a visitor of the portal', async () => {
    const { appId } = await appWith(1);
    const visit = async (capabilities: ('controlDeliveries' | 'resend' | 'view')[]) => {
      const link = await makePortalLink(posthorn.api, appId, { capabilities });
      const cookie = await openLink(posthorn.baseUrl, link);
      return createSessionClient(posthorn.baseUrl, cookie, `portal ${link.id}`);
    };
    const [controller, resender] = [await visit(['controlDeliveries']), await visit(['resend'])];
    dataOf(await plan('cancel', { eventType: 'a' }, controller));
    dataOf(await cancel({ eventType: 'a' }, controller), 202);
    expectFailure(await resend({ eventType: 'a' }, controller), 403, 'insufficient_scope');
    dataOf(await resend({ eventType: 'a' }, resender), 202);
    expectFailure(await cancel({ eventType: 'a' }, resender), 403, 'insufficient_scope');
  });
});
