import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo } from '@posthorn/platform/mongo/connect.ts';
import type { ApiClient } from '../../support/api/api-client.ts';
import {
  dataOf,
  expectDeleted,
  expectFailure,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import {
  createResources,
  type Resources,
  type ShownDelivery,
  type ShownMessage,
} from '../../support/api/resources.ts';
import { type Company, createCompany, withCompanyId } from '../../support/process/companies.ts';
import { ADMIN } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { readEverything } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('Deletions', () => {
  /** A project with an app, a webhook of the app and a global one. */
  interface Tree {
    projectId: string;
    appId: string;
    webhookId: string;
    globalId: string;
  }

  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();
  let api: ApiClient;

  beforeAll(() => {
    // A failed delivery stays pending for the whole test.
    api = withCompanyId(posthorn);
  });

  /** A deletion is responded to after 2 s at most. On a busy machine the rest of it follows. */
  const untilGone = (path: string): Promise<unknown> =>
    eventually(`${path} is gone`, async () => (await api.get(path)).status === 404);

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
        await untilGone(path);
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

    it('deletes resources too that are created under it at the same time', async () => {
      const tree = await createTree();
      const fields = { name: 'Late', projectId: tree.projectId };
      const [, ...made] = await Promise.all([
        posthorn.api.delete(`/api/v1/projects/${tree.projectId}`),
        ...Array.from({ length: 20 }, () => posthorn.api.post('/apps', fields)),
        ...Array.from({ length: 20 }, () =>
          posthorn.api.post('/webhooks', { url: receiver.url, appId: tree.appId }),
        ),
      ]);
      for (const { body } of made.filter((each) => each.status === 201)) {
        const { id } = body.data as { id: string };
        await untilGone(id.startsWith('app_') ? `/apps/${id}` : `/webhooks/${id}`);
      }
    });
  });

  describe('Deleting an app', () => {
    it('deletes its webhooks and cancels their pending deliveries, and leaves the project', async () => {
      const tree = await createTree();
      const pending = await waiting(tree.webhookId);
      const global = await waiting(tree.globalId);
      expectDeleted(await api.delete(`/apps/${tree.appId}`));
      await untilGone(`/webhooks/${tree.webhookId}`);
      expect(await make.deliveryOnce('cancelled', pending.id)).toMatchObject(CANCELLED);
      dataOf(await api.get(`/api/v1/projects/${tree.projectId}`));
      dataOf(await api.get(`/webhooks/${tree.globalId}`));
      expect(await make.delivery(global.id)).toMatchObject({ status: 'pending' });
    });
  });

  describe('Deleting a webhook', () => {
    it('cancels the pending deliveries of this webhook alone', async () => {
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
});

describe('A deleted company', () => {
  type Store = Awaited<ReturnType<typeof connectMongo>>;

  const { posthorn } = useCompany('contract');
  const receiver = useReceiver();
  let company: Company;
  let make: Resources;
  let store: Store;

  beforeAll(async () => {
    company = await createCompany(posthorn, 'To be deleted');
    make = createResources(company.api);
    store = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  }, 120_000);

  afterAll(async () => {
    await store.close();
  });

  /** A delivered message, one that waits for its retry, resends of both kinds, and a deleted app. */
  async function useEverything(): Promise<void> {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const delivered = await make.message({ webhookId });
    const deliveryId = String(delivered.deliveries[0]?.id);
    await make.deliveryOnce('delivered', deliveryId);
    dataOf(await company.api.post(`/api/v1/deliveries/${deliveryId}/resend`, {}));
    const since = new Date(Date.now() - 60_000).toISOString();
    const all = await company.api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
    dataOf(all, 202);
    receiver.answerWith(failing(99));
    const failed = await make.message({ webhookId });
    await eventually('the first failure', async () => {
      return (await make.delivery(String(failed.deliveries[0]?.id))).attemptCount === 1;
    });
    const { id: appId } = await make.app();
    const { api, companyId } = company;
    const ask = (method: string) =>
      api.request(method, `/apps/${appId}`, undefined, { companyid: companyId });
    expectDeleted(await ask('DELETE'));
    await eventually('the end of the app', async () => (await ask('GET')).status === 404);
  }

  /** The documents with the id of the company in them, by the name of their collection. */
  async function documentsWith(companyId: string): Promise<Record<string, object[]>> {
    const found = Object.entries(await readEverything(store.db)).map(
      ([name, all]) =>
        [name, all.filter((each) => JSON.stringify(each).includes(companyId))] as const,
    );
    return Object.fromEntries(found.filter(([, some]) => some.length > 0));
  }

  const remove = async (confirm: string): Promise<object> => {
    const args = ['company', 'delete', company.companyId, '--confirm', confirm, '--json'];
    return JSON.parse(await runProgram(ADMIN, args, posthorn.env)) as object;
  };

  describe('The export of a company', () => {
    it('has everything of it, and an end that counts it', async () => {
      const { companyId } = company;
      await useEverything();
      const args = ['company', 'export', companyId];
      const lines = (await runProgram(ADMIN, args, posthorn.env)).trimEnd().split('\n');
      const things = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(things.at(0)).toMatchObject({ type: 'header', version: 1, companyId });
      const counts = { project: 2, app: 1, webhook: 1, apiKey: 1, message: 2, delivery: 2 };
      expect(things.at(-1)).toMatchObject({ type: 'end', counts });
      // An id may have the letters of any word.
      expect(lines.join()).not.toMatch(/whsec_|hash":/i);
    });
  });

  describe('A company that is deleted [security]', () => {
    it('has no keys at once, and after two minutes only the audit event of its deletion', async () => {
      const { companyId, api } = company;
      await expect(remove('comp_other')).rejects.toThrow(`give --confirm ${companyId}.`);
      dataOf(await api.get('/webhooks'));

      expect(await remove(companyId)).toEqual({ companyId, status: 'removing' });
      await eventually(
        'the end of its keys',
        async () => (await api.get('/webhooks')).status === 401,
      );
      const before = await documentsWith(companyId);
      expect(before).toMatchObject({ messages: [{}, {}], deliveries: [{}, {}] });
      // Two minutes pass for it.
      const companies = collection(store.db, 'companies');
      await companies.updateOne({ _id: companyId }, { $set: { removalAt: new Date(0) } });
      await eventually(
        'the end of the company',
        async () => {
          return (await companies.findOne({ _id: companyId })) === null;
        },
        40_000,
      );
      // The company goes last, and then only the lease of its removal is left.
      const left = await eventually('nothing but its deletion', async () => {
        const found = await documentsWith(companyId);
        return Object.keys(found).join() === 'auditEvents' ? found : null;
      });
      const deletion = { action: 'company.deleted', companyId: NO_COMPANY };
      expect(left).toMatchObject({ auditEvents: [deletion] });
      dataOf(await posthorn.api.get('/webhooks'));
    }, 120_000);
  });
});

describe('A company that is suspended [security]', () => {
  const { posthorn, make } = useCompany('contract');
  const receiver = useReceiver();

  async function admin(command: 'suspend' | 'resume'): Promise<object> {
    const args = ['company', command, posthorn.companyId, '--json'];
    return JSON.parse(await runProgram(ADMIN, args, posthorn.env)) as object;
  }

  /** At two a second the backlog lasts for far longer than the suspension takes to be known. */
  const MESSAGES = 100;
  const PER_SECOND = 2;
  const QUIET_MS = 3_000;

  it('is refused and gets nothing delivered; once it is resumed it gets all of it, once', async () => {
    const { companyId, api } = posthorn;
    const { id } = await make.webhook({ url: receiver.url });
    const limit = (rateLimitPerSecond: number | null) =>
      api.put(`/webhooks/${id}`, { rateLimitPerSecond });
    dataOf(await limit(PER_SECOND));
    const messages = Array.from({ length: MESSAGES }, () => ({ webhookId: id, payload: {} }));
    dataOf(await api.post('/api/v1/webhook-messages/batch', { messages }), 202);
    await eventually('the first delivery', () => receiver.received.length > 0);

    expect(await admin('suspend')).toEqual({ companyId, status: 'suspended' });
    await eventually('refused', async () => (await api.get('/webhooks')).status === 403);
    expectFailure(await api.get('/webhooks'), 403, 'company_suspended');
    expectFailure(await api.post('/webhooks', {}), 403, 'company_suspended');
    await eventually('quiet', () => {
      const last = receiver.received.at(-1);
      return last && Date.now() - last.atMs > QUIET_MS;
    });
    expect(receiver.received.length).toBeLessThan(MESSAGES);

    expect(await admin('resume')).toEqual({ companyId, status: 'active' });
    await eventually('taken again', async () => (await limit(null)).status === 200);
    await eventually('all', () => receiver.received.length >= MESSAGES);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    expect([ids.length, new Set(ids).size]).toEqual([MESSAGES, MESSAGES]);
  });
});
