import { describe, expect, it } from '@jest/globals';
import { ApiError, Posthorn } from '@posthorn/client';
import { TestApi } from '@posthorn/client/testing';
import { useCompany } from '../../support/process/use-company.ts';

/** What differs between two answers that are the same. */
const normalized = (answer: unknown): unknown =>
  JSON.parse(
    JSON.stringify(answer)
      .replace(/\b(proj|app|wh|msg|dlv|att|comp)_[0-9a-z]{26}\b/g, '$1_ID')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/whsec_[\w+/=]+/g, 'SECRET')
      .replace(/"signature":"[0-9a-f]{64}"/g, '"signature":"SIGNATURE"')
      // Of a message, they are those of the delivery and its signature.
      .replace(/"headers":\[\{.*?\}\]/g, '"headers":"SOME"'),
  );

/** Makes the calls that the test API answers, and returns the status and the data of each. */
async function answersOf(client: Posthorn): Promise<unknown[]> {
  const answers: unknown[] = [];
  async function call<T>(promise: {
    withResponse: () => Promise<{ data: T; response: Response }>;
  }) {
    const { data, response } = await promise.withResponse();
    answers.push(normalized([response.status, data ?? null]));
    return data;
  }
  async function fail(promise: PromiseLike<unknown>): Promise<void> {
    const error = await Promise.resolve(promise).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    answers.push(error instanceof ApiError ? [error.status, error.code] : String(error));
  }
  const { projects, apps, webhooks, messages } = client;
  const project = await call(projects.create({ name: 'Shop', uid: 'test-api' }));
  await call(projects.update(project.id, { description: 'd', metadata: { a: 'b' } }));
  await call(projects.get('uid:test-api'));
  const fields = { name: 'Orders', projectId: project.id };
  const app = await call(apps.create(fields));
  await call(apps.update('uid:test-api-app', fields, { upsert: true }));
  await call(apps.update(app.id, { storePayloads: 'retained', uid: 'test-api-orders' }));
  await call(apps.list({ projectId: project.id }));
  const nothing = { appId: app.id, payload: { n: 1 } };
  await call(messages.send(nothing));
  const webhook = { appId: app.id, url: 'https://example.com:8443/a' };
  const first = await call(webhooks.create(webhook));
  const basic = { authMethod: 'basic', basicAuthUsername: 'a', basicAuthPassword: 'b' } as const;
  await call(
    webhooks.create({
      ...webhook,
      ...basic,
      name: 'Basic',
      eventTypes: ['order.paid'],
    }),
  );
  await call(webhooks.get(first.id));
  await call(webhooks.update(first.id, { maxAttempts: 3, metadata: null }));
  await call(webhooks.list({ appId: app.id }));
  // In a day: nothing becomes of it while the test reads it.
  const deliverAt = new Date(Date.now() + 86_400_000).toISOString();
  const message = {
    ...nothing,
    eventType: 'order.paid',
    tags: ['a'],
    externalId: 'test-api',
    deliverAt,
  };
  const sent = await call(messages.send(message, { idempotencyKey: 'test-api-1' }));
  await call(messages.send(message, { idempotencyKey: 'test-api-1' }));
  await call(messages.get(sent.id));
  await call(messages.list({ externalId: 'test-api' }));
  const batch = { messages: [message, { ...message, appId: 'uid:test-api-none' }] };
  await call(
    client.request('POST', '/webhook-messages/batch', {
      body: batch,
      idempotencyKey: 'test-api-2',
    }),
  );
  await call(
    client.request('POST', '/webhook-messages/batch', {
      body: batch,
      idempotencyKey: 'test-api-2',
    }),
  );
  await fail(messages.send(nothing, { idempotencyKey: 'test-api-1' }));
  await fail(projects.create({ name: 'Shop', uid: 'test-api' }));
  await fail(client.request('POST', '/apps', { body: { nmae: 'Shop' } }));
  await fail(webhooks.create({ ...webhook, appId: 'uid:test-api-none' }));
  await call(projects.delete(project.id));
  await fail(webhooks.get(first.id));
  return answers;
}

describe('the test API of @posthorn/client', () => {
  const { posthorn } = useCompany('contract');

  it('answers as the API does', async () => {
    const api = new TestApi();
    api.outcome = 'pending';
    const { baseUrl, apiKey } = posthorn;
    const expected = await answersOf(new Posthorn({ baseUrl, apiKey }));
    expect(await answersOf(new Posthorn(api.options))).toEqual(expected);
  });
});
