import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ApiClient } from '../../support/api/api-client.ts';
import { withCompanyId } from '../../support/process/companies.ts';
import { eventually } from '../../support/time/eventually.ts';
import { dataOf, expectDeleted, expectNotFound } from '../../support/api/expect-answers.ts';
import type { OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
  type ShownMessage,
} from '../../support/api/resources.ts';

/** A project with an app, a webhook of the app and a global one. */
interface Tree {
  projectId: string;
  appId: string;
  webhookId: string;
  globalId: string;
}

let posthorn: OwnCompany;
let api: ApiClient;
let receiver: Receiver;
let make: Resources;

beforeAll(async () => {
  // A failed delivery stays pending for the whole test.
  posthorn = await joinShared('contract');
  api = withCompanyId(posthorn);
  receiver = await startReceiver();
  make = createResources(posthorn.api);
}, 120_000);

afterAll(async () => {
  await receiver.close();
  await posthorn.stop();
}, 60_000);

async function createTree(): Promise<Tree> {
  const url = receiver.url;
  const { id: projectId } = await make.project();
  const { id: appId } = await make.app({ projectId });
  const { id: webhookId } = await make.webhook({ url, appId });
  const { id: globalId } = await make.webhook({ url, projectId, environmentId: 'live' });
  return { projectId, appId, webhookId, globalId };
}

/** A delivery that failed once and waits for its retry. */
async function waiting(webhookId: string): Promise<ShownDelivery> {
  receiver.answerWith(failing(99));
  const { deliveries } = await make.message({ webhookId });
  return eventually('the first failure', async () => {
    const shown = await make.delivery(String(deliveries[0]?.id));
    return shown.attemptCount === 1 ? shown : null;
  });
}

async function delivered(target: object): Promise<ShownDelivery> {
  receiver.answerWith((response) => response.writeHead(200).end('ok'));
  const { deliveries } = await make.message(target);
  return make.deliveryOnce('delivered', String(deliveries[0]?.id));
}

const CANCELLED = { status: 'cancelled', reason: 'webhook_deleted', nextAttemptAt: null };

describe('Deleting a project', () => {
  it('deletes its apps and webhooks, also global webhooks, and nothing of another project', async () => {
    const [tree, other] = [await createTree(), await createTree()];
    expectDeleted(await posthorn.api.delete(`/api/v1/projects/${tree.projectId}`));
    for (const path of [
      ...[`/api/v1/projects/${tree.projectId}`, `/apps/${tree.appId}`],
      ...[`/webhooks/${tree.webhookId}`, `/webhooks/${tree.globalId}`],
      ...[`/apps?projectId=${tree.projectId}`, `/webhooks?appId=${tree.appId}`],
    ]) {
      expectNotFound(await api.get(path));
    }
    for (const target of [{ appId: tree.appId }, { webhookId: tree.globalId }]) {
      expectNotFound(await api.post('/webhook-messages', { ...target, payload: {} }));
    }
    dataOf(await api.get(`/apps/${other.appId}`));
    dataOf(await api.get(`/webhooks/${other.webhookId}`));
    dataOf(await api.get(`/webhooks/${other.globalId}`));
  });

  it('cancels the pending deliveries of both kinds of webhooks', async () => {
    const tree = await createTree();
    const pending = [await waiting(tree.webhookId), await waiting(tree.globalId)];
    const other = await waiting((await createTree()).webhookId);
    expectDeleted(await posthorn.api.delete(`/api/v1/projects/${tree.projectId}`));
    for (const { id } of pending) {
      expect(await make.deliveryOnce('cancelled', id)).toMatchObject(CANCELLED);
    }
    expect(await make.delivery(other.id)).toMatchObject({ status: 'pending' });
  });

  it('also deletes what is created under it at the same time', async () => {
    const tree = await createTree();
    const fields = { name: 'Late', projectId: tree.projectId };
    const [, ...made] = await Promise.all([
      posthorn.api.delete(`/api/v1/projects/${tree.projectId}`),
      ...Array.from({ length: 20 }, () => posthorn.api.post('/apps', fields)),
      ...Array.from({ length: 20 }, () =>
        posthorn.api.post('/webhooks', { url: receiver.url, appId: tree.appId }),
      ),
    ]);
    for (const { status, body } of made.filter((each) => each.status === 201)) {
      const { id } = body.data as { id: string };
      const path = id.startsWith('app_') ? `/apps/${id}` : `/webhooks/${id}`;
      await eventually(`${status} ${id} gone`, async () => (await api.get(path)).status === 404);
    }
  });
});

describe('Deleting an app', () => {
  it('deletes its webhooks and cancels their pending deliveries, and leaves the project', async () => {
    const tree = await createTree();
    const pending = await waiting(tree.webhookId);
    const global = await waiting(tree.globalId);
    expectDeleted(await api.delete(`/apps/${tree.appId}`));
    expectNotFound(await api.get(`/webhooks/${tree.webhookId}`));
    expect(await make.deliveryOnce('cancelled', pending.id)).toMatchObject(CANCELLED);
    dataOf(await api.get(`/api/v1/projects/${tree.projectId}`));
    dataOf(await api.get(`/webhooks/${tree.globalId}`));
    expect(await make.delivery(global.id)).toMatchObject({ status: 'pending' });
  });
});

describe('Deleting a webhook', () => {
  it('cancels its pending deliveries and those of no other webhook of the app', async () => {
    const tree = await createTree();
    const { id: sibling } = await make.webhook({ url: receiver.url, appId: tree.appId });
    const [gone, stays] = [await waiting(tree.webhookId), await waiting(sibling)];
    expectDeleted(await posthorn.api.delete(`/webhooks/${tree.webhookId}`));
    const cancelled = await make.deliveryOnce('cancelled', gone.id);
    const attempts = gone.attempts.map(({ id, number, outcome }) => ({ id, number, outcome }));
    expect(cancelled).toMatchObject({ ...CANCELLED, attempts });
    expect(await make.delivery(stays.id)).toMatchObject({ status: 'pending' });
  });
});

describe('What was sent', () => {
  it.each<[string, (tree: Tree) => string]>([
    ['webhook', ({ webhookId }) => `/webhooks/${webhookId}`],
    ['app', ({ appId }) => `/apps/${appId}`],
    ['project', ({ projectId }) => `/api/v1/projects/${projectId}`],
  ])('stays readable after its %s was deleted', async (_what, pathOf) => {
    const tree = await createTree();
    const delivery = await delivered({ appId: tree.appId });
    const { messageId } = delivery;
    expectDeleted(await api.delete(pathOf(tree)));
    expect(await make.delivery(delivery.id)).toMatchObject({
      status: 'delivered',
      webhookId: tree.webhookId,
      messageId,
      attempts: [{ number: 1, statusCode: 200, response: 'ok' }],
    });
    const path = `/api/v1/webhook-messages/${messageId}`;
    const message = dataOf<ShownMessage>(await api.get(path));
    expect(message).toMatchObject({ delivered: true, status: 'delivered', payload: '{"n":1}' });
    expect(dataOf(await api.get(`${path}/deliveries`))).toHaveLength(1);
    const listed = await api.get(`/api/v1/webhook-messages?webhookId=${tree.webhookId}`);
    expect(dataOf<ShownMessage[]>(listed).map(({ id }) => id)).toEqual([messageId]);
  });
});
