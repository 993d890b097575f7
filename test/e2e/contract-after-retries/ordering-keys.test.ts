import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Capability } from '@posthorn/domain/access.ts';
import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import {
  dataOf,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import type { ShownDelivery, ShownWebhook } from '../../support/api/resources.ts';
import { createSessionClient, makePortalLink, openLink } from '../../support/api/session-client.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';

const DAY_MS = 86_400_000;

interface Blocked {
  orderingKey: string;
  head: ShownDelivery;
}

/** See docs/contract.md C29.10 and C29.11. The keys are stored as services store them. */
describe('The ordering keys of a webhook', () => {
  const { posthorn, make } = useCompany('contract-after-retries');
  const receiver = useReceiver();
  let mongo: MongoConnection;
  let webhook: ShownWebhook;

  beforeAll(async () => {
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
    receiver.answerWith((response) => response.writeHead(500).end());
  });

  afterAll(() => mongo.close());

  beforeEach(async () => {
    webhook = await make.webhook({ url: receiver.url, ordering: 'block' });
  });

  const path = (): string => `/api/v1/webhooks/${webhook.id}/ordering-keys`;
  const list = async (query = '') => posthorn.api.get(`${path()}${query}`);
  const skip = (body: object) => posthorn.api.post(`${path()}/skip`, body);

  /** Blocks a key at an exhausted delivery, the newest of those that are blocked. */
  async function block(orderingKey: string, ageMs: number): Promise<Blocked> {
    const message = await make.message({ webhookId: webhook.id });
    const head = await make.deliveryOnce('exhausted', String(message.deliveries[0]?.id));
    const since = new Date(Date.now() - ageMs);
    await collection(mongo.db, 'sequences').insertOne({
      _id: sequenceIdOf(webhook.id, orderingKey),
      companyId: posthorn.companyId,
      webhookId: webhook.id,
      orderingKey,
      head: { deliveryId: head.id, messageId: head.messageId, position: 1 },
      fromId: head.id,
      changes: 1,
      isBlocked: true,
      lookAfterMs: DAY_MS,
      dueAt: new Date(Date.now() + DAY_MS),
      since,
      updatedAt: since,
    });
    return { orderingKey, head };
  }

  const shown = ({ orderingKey, head }: Blocked) => ({
    orderingKey,
    state: 'blocked',
    headDeliveryId: head.id,
    headMessageId: head.messageId,
    headStatus: 'exhausted',
    nextAttemptAt: null,
    waiting: 0,
    since: expect.any(String),
  });

  it('are listed page by page, oldest first, and counted with the webhook', async () => {
    expect(dataOf(await list())).toEqual([]);
    const [old, young] = [await block('a/é 1', 5_000), await block('b', 1_000)];
    expect(dataOf(await list('?state=blocked'))).toEqual([shown(old), shown(young)]);
    expect(dataOf(await list('?state=waiting'))).toEqual([]);
    const first = await list('?limit=1');
    expect(dataOf(first)).toEqual([shown(old)]);
    const cursor = String(first.body.nextCursor);
    expect(dataOf(await list(`?cursor=${cursor}`))).toEqual([shown(young)]);
    expectInvalid(await list(`?state=waiting&cursor=${cursor}`), 'cursor');
    expectInvalid(await list('?state=free'), 'state');
    const { blockedKeys } = dataOf<{ blockedKeys: number }>(
      await posthorn.api.get(`/webhooks/${webhook.id}`),
    );
    expect(blockedKeys).toBe(2);
  });

  it('go on behind an exhausted delivery that is skipped, once, and the audit log has no key', async () => {
    const { orderingKey, head } = await block('secret-key', 1_000);
    const deliveryId = head.id;
    expectFailure(await skip({ orderingKey: 'other', deliveryId }), 409, 'not_blocked');
    expectFailure(await skip({ orderingKey, deliveryId: 'dlv_none' }), 409, 'not_blocked');
    expect(dataOf(await skip({ orderingKey, deliveryId }))).toEqual({
      orderingKey,
      state: 'free',
      headDeliveryId: null,
      headMessageId: null,
      headStatus: null,
      nextAttemptAt: null,
      waiting: null,
      since: null,
    });
    expectFailure(await skip({ orderingKey, deliveryId }), 409, 'not_blocked');
    expect(dataOf(await list())).toEqual([]);
    expect(await make.delivery(deliveryId)).toMatchObject({ status: 'exhausted' });
    const events = await readAuditEvents(posthorn.api, {
      action: 'webhook.ordering_key_skipped',
      targetId: webhook.id,
    });
    expect(events.find(({ outcome }) => outcome === 'done')).toMatchObject({
      changes: [{ field: 'deliveryId', before: null, after: deliveryId }],
    });
    expect(JSON.stringify(events)).not.toContain(orderingKey);
  });

  it('are those of a webhook of the company', async () => {
    const unknown = '/api/v1/webhooks/wh_none/ordering-keys';
    expectNotFound(await posthorn.api.get(unknown));
    const body = { orderingKey: 'a', deliveryId: 'dlv_none' };
    expectNotFound(await posthorn.api.post(`${unknown}/skip`, body));
    expectInvalid(await skip({ ...body, orderingKey: '' }), 'orderingKey');
  });

  it('are seen by a visitor of the portal, and skipped with controlDeliveries', async () => {
    const { orderingKey, head } = await block('a', 1_000);
    const { appId } = dataOf<{ appId: string }>(await posthorn.api.get(`/webhooks/${webhook.id}`));
    const visitor = async (capability: Capability) => {
      const link = await makePortalLink(posthorn.api, appId, { capabilities: [capability] });
      const cookie = await openLink(posthorn.baseUrl, link);
      return createSessionClient(posthorn.baseUrl, cookie, `portal ${link.id}`);
    };
    const viewer = await visitor('view');
    expect(dataOf<unknown[]>(await viewer.get(path()))).toHaveLength(1);
    const body = { orderingKey, deliveryId: head.id };
    expectFailure(await viewer.post(`${path()}/skip`, body), 403, 'insufficient_scope');
    const controller = await visitor('controlDeliveries');
    expect(dataOf(await controller.post(`${path()}/skip`, body))).toMatchObject({ state: 'free' });
  });
});
