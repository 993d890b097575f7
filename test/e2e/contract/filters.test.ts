import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Capability } from '@posthorn/domain/access.ts';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import { dataOf, expectFailure, expectInvalid } from '../../support/api/expect-answers.ts';
import { createResources, type Resources, type ShownMessage } from '../../support/api/resources.ts';
import { createSessionClient, makePortalLink, openLink } from '../../support/api/session-client.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { type Receiver, startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

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

const FROM_100 = { payload: { amount: { $gte: 100 } } };

interface ShownFilter {
  id: string;
  filter: object | null;
}

const webhookWith = (fields: object): Promise<ShownFilter> =>
  make.webhook({ url: receiver.url, ...fields }) as unknown as Promise<ShownFilter>;

const idsOf = ({ deliveries }: ShownMessage): string[] =>
  deliveries.map(({ webhookId }) => webhookId);

/** The payloads that arrived at an endpoint, in order. */
const bodiesAt = (endpoint: string): unknown[] =>
  receiver.received
    .filter(({ path }) => path === `/hook${endpoint}`)
    .map(({ body }) => JSON.parse(String(body)) as unknown);

describe('Wildcards (C6.11)', () => {
  it('select every event type that begins so, and are refused elsewhere', async () => {
    const { id: appId } = await make.app();
    const { id: orders } = await webhookWith({ appId, eventTypes: ['order.*'] });
    const { id: items } = await webhookWith({ appId, eventTypes: ['order.item.*', 'invoice'] });
    const targetsOf = async (eventType: string) => idsOf(await make.message({ appId, eventType }));
    expect(await targetsOf('order.paid')).toEqual([orders]);
    expect(await targetsOf('order.item.added')).toEqual([orders, items]);
    expect(await targetsOf('invoice')).toEqual([items]);
    expect(await targetsOf('order')).toEqual([]);
    for (const wrong of ['*', '*.paid', 'order*', 'order.*.paid']) {
      const answer = await posthorn.api.put(`/api/v1/webhooks/${orders}`, { eventTypes: [wrong] });
      expectInvalid(answer, 'eventTypes.0');
    }
    const sent = { appId, eventType: 'order.*', payload: {} };
    expectInvalid(await posthorn.api.post('/webhook-messages', sent), 'eventType');
  });
});

describe('The filter of a webhook (C27)', () => {
  it('decides which webhooks get a message, and arrives with those only', async () => {
    const { id: appId } = await make.app();
    const url = (path: string) => ({ appId, url: `${receiver.url}/${path}` });
    const { id: large } = await webhookWith({ ...url('large'), filter: FROM_100 });
    const { id: eu } = await webhookWith({ ...url('eu'), filter: { tags: 'eu' } });
    const { id: all } = await webhookWith(url('all'));
    const send = (payload: object, tags: string[] = []) => make.message({ appId, payload, tags });
    const [first, second, third] = [
      await send({ amount: 99 }),
      await send({ amount: 100 }),
      await send({ amount: '100' }, ['eu', 'new']),
    ];
    expect([first, second, third].map(idsOf)).toEqual([[all], [large, all], [eu, all]]);
    const arrived = () => ['/large', '/eu', '/all'].map((path) => bodiesAt(path).length);
    await eventually('the deliveries', () => arrived()[2] === 3 && arrived()[0] === 1);
    await eventually('the delivery by tag', () => bodiesAt('/eu').length === 1);
    expect(bodiesAt('/large')).toEqual([{ amount: 100 }]);
    expect(bodiesAt('/eu')).toEqual([{ amount: '100' }]);
  });

  it('is the same for each message of a batch', async () => {
    const { id: appId } = await make.app();
    await webhookWith({ appId, filter: FROM_100 });
    const messages = [50, 100, 150].map((amount) => ({ appId, payload: { amount } }));
    const answer = await posthorn.api.post('/api/v1/webhook-messages/batch', { messages });
    const { results } = dataOf<{ results: { deliveries: number }[] }>(answer, 202);
    expect(results.map(({ deliveries }) => deliveries)).toEqual([0, 1, 1]);
  });

  it('says why a message has no target, and leaves a message to the webhook itself alone', async () => {
    const { id: appId } = await make.app();
    const { id } = await webhookWith({ appId, filter: FROM_100, eventTypes: ['order.paid'] });
    const send = (eventType: string) => make.message({ appId, eventType, payload: { amount: 1 } });
    const message = await send('order.paid');
    expect(message).toMatchObject({ deliveries: [], noTargetReason: 'filter' });
    const shown = await posthorn.api.get(`/api/v1/webhook-messages/${message.id}`);
    expect(dataOf(shown)).toMatchObject({ status: 'no_target', noTargetReason: 'filter' });
    expect(await send('order.sent')).toMatchObject({ noTargetReason: 'event_type' });
    expect(idsOf(await make.message({ webhookId: id, payload: { amount: 1 } }))).toEqual([id]);
  });

  it('is shown, changed, taken away and audited, and counts from the next message on', async () => {
    const { id: appId } = await make.app();
    const made = await webhookWith({ appId, filter: FROM_100 });
    expect(made.filter).toEqual(FROM_100);
    const path = `/api/v1/webhooks/${made.id}`;
    const nested = { payload: { created_at: { $exist: true } }, $not: { eventType: 'test' } };
    dataOf(await posthorn.api.put(path, { filter: nested }));
    expect(dataOf(await posthorn.api.get(path))).toMatchObject({ filter: nested });
    const send = () => make.message({ appId, payload: { created_at: 1 } });
    await eventually('the changed filter', async () => idsOf(await send()).length === 1);
    dataOf(await posthorn.api.put(path, { filter: null }));
    expect(dataOf(await posthorn.api.get(path))).toMatchObject({ filter: null });
    const [event] = await readAuditEvents(posthorn.api, {
      targetId: made.id,
      action: 'webhook.updated',
    });
    expect(event).toMatchObject({
      changes: [{ field: 'filter', before: JSON.stringify(nested), after: null }],
    });
  });

  it.each<[string, unknown]>([
    ['filter.payload.amount.$foo', { payload: { amount: { $foo: 1 } } }],
    ['filter.headers', { headers: { a: 1 } }],
    ['filter.payload.a.$gt', { payload: { a: { $gt: [] } } }],
    ['filter', { payload: 'x'.repeat(4_096) }],
    ['filter', 'payload'],
  ])('is refused with the path %s', async (path, filter) => {
    const body = { url: receiver.url, appId: 'app_1', filter };
    expectInvalid(await posthorn.api.post('/webhooks', body), path);
  });

  it('decides anew in a replay, which sends what passes it now', async () => {
    const { id: appId } = await make.app();
    const sent = [];
    for (const amount of [50, 100, 150])
      sent.push(await make.message({ appId, payload: { amount } }));
    const { id } = await webhookWith({ appId, filter: FROM_100, url: `${receiver.url}/replayed` });
    const since = new Date(Date.now() - 60_000).toISOString();
    const replay = `/api/v1/webhooks/${id}/replay-missing`;
    // The count does not apply the filter.
    expect(dataOf(await posthorn.api.get(`${replay}/estimate?since=${since}`))).toEqual({
      total: 3,
    });
    const started = dataOf<{ id: string }>(await posthorn.api.post(replay, { since }), 202);
    const done = await eventually('the end of the replay', async () => {
      const resend = dataOf<{ status: string }>(
        await posthorn.api.get(`/api/v1/resends/${started.id}`),
      );
      return resend.status === 'running' ? null : resend;
    });
    expect(done).toMatchObject({ status: 'done', done: 2, skipped: 0, total: 2 });
    await eventually('the deliveries', () => bodiesAt('/replayed').length === 2);
    expect(bodiesAt('/replayed')).toEqual(
      expect.arrayContaining([{ amount: 100 }, { amount: 150 }]),
    );
  });
});

describe('Test a filter · POST /api/v1/test-filter (C27.7)', () => {
  const test = (body: object): Promise<ApiAnswer> => posthorn.api.post('/api/v1/test-filter', body);

  it('returns whether a message passes, and the first condition that fails', async () => {
    const filter = { ...FROM_100, eventType: { $startsWith: 'order.' }, tags: 'eu' };
    const message = { payload: { amount: 120 }, eventType: 'order.paid', tags: ['eu'] };
    expect(dataOf(await test({ filter, ...message }))).toEqual({
      matches: true,
      failedAt: null,
      undecided: false,
    });
    expect(dataOf(await test({ filter, ...message, payload: { amount: 99 } }))).toEqual({
      matches: false,
      failedAt: 'payload.amount.$gte',
      undecided: false,
    });
    expect(dataOf(await test({ filter, payload: { amount: 120 } }))).toMatchObject({
      failedAt: 'eventType.$startsWith',
    });
  });

  it('says when a filter costs too much for the message, which then passes', async () => {
    const list = Array.from({ length: 20_000 }, (_, n) => n);
    const answer = await test({ filter: { payload: { list: -1 } }, payload: { list } });
    expect(dataOf(answer)).toEqual({ matches: true, failedAt: null, undecided: true });
  });

  it('refuses a wrong filter and a missing payload, and is in no audit log', async () => {
    expectInvalid(await test({ filter: { a: 1 }, payload: {} }), 'filter.a');
    expectInvalid(await test({ filter: {} }), 'payload');
    expectFailure(await posthorn.api.get('/api/v1/test-filter'), 405, 'method_not_allowed');
    const events = await readAuditEvents(posthorn.api, {});
    expect(events.filter(({ action }) => action.includes('filter'))).toEqual([]);
  });

  it('is for visitors of the portal who may manage webhooks', async () => {
    const { id: appId } = await make.app();
    const body = { filter: FROM_100, payload: { amount: 100 } };
    const visitWith = async (capability: Capability): Promise<ApiAnswer> => {
      const link = await makePortalLink(posthorn.api, appId, { capabilities: [capability] });
      const cookie = await openLink(posthorn.baseUrl, link);
      const visitor = createSessionClient(posthorn.baseUrl, cookie, `portal ${link.id}`);
      return visitor.post('/api/v1/test-filter', body);
    };
    expect(dataOf(await visitWith('manage'))).toMatchObject({ matches: true });
    expectFailure(await visitWith('view'), 403, 'insufficient_scope');
  });
});
