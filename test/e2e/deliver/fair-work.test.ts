import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import type { ApiAnswer } from '../../support/api/api-client.ts';
import { createResources } from '../../support/api/resources.ts';
import { type Company, createCompany } from '../../support/process/companies.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { type BusyEndpoint, startBusyEndpoint } from '../../support/receivers/busy-endpoint.ts';
import { insertFailedDeliveries } from '../../support/stores/insert-failed-deliveries.ts';
import { findIn } from '../../support/stores/stored-documents.ts';
import { eventually } from '../../support/time/eventually.ts';

/*
 * The work of a company begins while others have as much as they want. With 2,000 webhooks that were cancelled again and
 * again, another company's cancellation was stored after 0.1 to 1.6 s (2026-11-29).
 */

let posthorn: Posthorn;
let mongo: MongoConnection;
/** Answers nothing, so that the work of the busy companies does not end. */
let silent: BusyEndpoint;
let prompt: BusyEndpoint;
let other: Company;

beforeAll(async () => {
  // Nothing ends by a time-out meanwhile, and what has failed once stays pending.
  posthorn = await startPosthorn({ DELIVERY_TIMEOUT_MS: '60000', RETRY_DELAYS: '1h' });
  mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  [silent, prompt] = await Promise.all([startBusyEndpoint(), startBusyEndpoint()]);
  silent.hold();
  other = await createCompany(posthorn, 'Other');
});

afterAll(async () => {
  await Promise.all([silent.close(), prompt.close()]);
  await mongo.close();
  await posthorn.stop();
});

interface Size {
  webhooks: number;
  messages: number;
}

async function appWith({ api }: Company, url: string, count: number) {
  const make = createResources(api);
  const { id: appId } = await make.app();
  const webhookIds: string[] = [];
  for (let n = 0; n < count; n += 1) {
    webhookIds.push((await make.webhook({ appId, url: `${url}?${n}` })).id);
  }
  return { appId, webhookIds };
}

async function sendTo({ api }: Company, appId: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await api.send({ appId }, { n });
}

/** What is ready to begin, by its kind. Each begins with its function. */
type Prepared = Record<'resend' | 'replay' | 'release' | 'removal', () => Promise<ApiAnswer[]>>;

/** Prepares work of each kind for a company, to this endpoint. */
async function prepare(company: Company, url: string, size: Size): Promise<Prepared> {
  const { api, companyId } = company;
  const since = new Date(Date.now() - 3_600_000).toISOString();
  const failed = await appWith(company, url, size.webhooks);
  for (const webhookId of failed.webhookIds) {
    await insertFailedDeliveries(mongo.db, { companyId, webhookId }, size.messages);
  }
  const { appId: missedId } = await appWith(company, url, 0);
  await sendTo(company, missedId, size.messages);
  const make = createResources(api);
  const late: string[] = [];
  for (let n = 0; n < size.webhooks; n += 1) {
    late.push((await make.webhook({ appId: missedId, url: `${url}?late${n}` })).id);
  }
  const held = await appWith(company, url, size.webhooks);
  await api.post(`/api/v1/apps/${held.appId}/hold`, {});
  await sendTo(company, held.appId, size.messages);
  const removed = await appWith(company, url, size.webhooks);
  const each = (ids: readonly string[], action: string) =>
    Promise.all(ids.map((id) => api.post(`/api/v1/webhooks/${id}/${action}`, { since })));
  return {
    resend: () => each(failed.webhookIds, 'resend-failed'),
    replay: () => each(late, 'replay-missing'),
    release: async () => [await api.post(`/api/v1/apps/${held.appId}/resume`, {})],
    removal: async () => [
      await api.delete(`/api/v1/apps/${removed.appId}`, { companyid: companyId }),
    ],
  };
}

describe('beside companies whose work does not end', () => {
  let own: Prepared;

  beforeAll(async () => {
    const busy = await Promise.all([1, 2, 3].map((n) => createCompany(posthorn, `Busy ${n}`)));
    const size = { webhooks: 8, messages: 10 };
    const prepared = await Promise.all(busy.map((each) => prepare(each, silent.url, size)));
    own = await prepare(other, prompt.url, { webhooks: 1, messages: 2 });
    for (const { resend, replay, release, removal } of prepared) {
      await Promise.all([resend(), replay(), release(), removal()]);
    }
    await eventually('they are busy', () => silent.open() > 50);
  });

  it.each(['resend', 'replay', 'release'] as const)('a %s of another one begins', async (kind) => {
    const before = prompt.total();
    const [answer] = await own[kind]();
    expect(answer?.status).toBe(202);
    await eventually('its attempts', () => prompt.total() === before + 2);
    expect(silent.successes.size).toBe(0);
  });

  it('a removal of another one ends', async () => {
    const [answer] = await own.removal();
    expect(answer?.status).toBe(200);
    expect(silent.successes.size).toBe(0);
  });
});

it('stores a cancellation beside a company that cancels all of its webhooks again and again', async () => {
  const flooding = await createCompany(posthorn, 'Flooding');
  const failing = await startBusyEndpoint();
  failing.answerWith(500);
  const { appId, webhookIds } = await appWith(flooding, failing.url, 40);
  await sendTo(flooding, appId, 3);
  const [webhookId = ''] = (await appWith(other, failing.url, 1)).webhookIds;
  const { deliveryId } = await other.api.send({ webhookId }, {});
  const stored = () => findIn(mongo.db.days.deliveries, { _id: deliveryId });
  await eventually('its first attempt', async () => (await stored())?.status === 'pending');
  const stopping = new AbortController();
  const flood = (async () => {
    while (!stopping.signal.aborted) {
      await Promise.all(
        webhookIds.map((id) => flooding.api.post(`/api/v1/webhooks/${id}/cancel-pending`, {})),
      );
    }
  })();
  await other.api.post(`/api/v1/webhooks/${webhookId}/cancel-pending`, {});
  await eventually('its cancellation', async () => (await stored())?.status === 'cancelled');
  stopping.abort();
  await flood;
  await failing.close();
});
