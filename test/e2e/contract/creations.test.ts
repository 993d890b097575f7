import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { dataOf, expectFailure, expectInvalid } from '../../support/api/expect-answers.ts';
import { useCompany } from '../../support/process/use-company.ts';

const url = 'https://example.com/hook';

const { posthorn } = useCompany('contract');
let api: ApiClient;
let target: { projectId: string; appId: string; webhookId: string };

beforeAll(async () => {
  ({ api } = posthorn);
  target = await api.createTarget(url);
}, 120_000);

const keyed = (key: string): Record<string, string> => ({ 'idempotency-key': key });
const isReplayed = ({ headers }: ApiAnswer): boolean =>
  headers.get('idempotency-replayed') === 'true';
const listed = async (path: string): Promise<{ name: string }[]> =>
  dataOf(await api.get(path, { companyid: posthorn.companyId }));

describe('a creation with an Idempotency-Key', () => {
  it('is made once by a hundred requests at the same time', async () => {
    const body = { name: 'Only one', projectId: target.projectId };
    const create = () => api.post('/apps', body, keyed('only-one'));
    const answers = await Promise.all(Array.from({ length: 100 }, create));
    for (const answer of answers) {
      if (answer.status === 409) {
        expectFailure(answer, 409, 'idempotency_key_running');
        expect(answer.headers.get('retry-after')).toBe('1');
      } else expect(answer.status).toBe(201);
    }
    const last = await create();
    expect([last.status, isReplayed(last)]).toEqual([201, true]);
    const apps = await listed(`/apps?projectId=${target.projectId}&limit=100`);
    expect(apps.filter(({ name }) => name === 'Only one')).toEqual([last.body.data]);
  });

  it('gets the first response again, at either address', async () => {
    const first = await api.post('/projects', { name: 'Twice' }, keyed('two-addresses'));
    const again = await api.post('/api/v1/projects', { name: 'Twice' }, keyed('two-addresses'));
    expect(dataOf(again, 201)).toEqual(dataOf(first, 201));
    expect([isReplayed(first), isReplayed(again)]).toEqual([false, true]);
    const projects = await listed('/api/v1/projects');
    expect(projects.filter(({ name }) => name === 'Twice')).toHaveLength(1);
  });

  it('is refused for another body, or another id in the address', async () => {
    dataOf(await api.post('/projects', { name: 'One' }, keyed('reused')), 201);
    const other = await api.post('/projects', { name: 'Other' }, keyed('reused'));
    expectFailure(other, 422, 'idempotency_key_reused');
    const test = (webhookId: string) =>
      api.post(`/api/v1/webhooks/${webhookId}/test`, {}, keyed('reused'));
    dataOf(await test(target.webhookId), 202);
    const { webhookId } = await api.createTarget(url);
    expectFailure(await test(webhookId), 422, 'idempotency_key_reused');
  });

  it('that was refused frees its key', async () => {
    const create = (projectId: string) =>
      api.post('/apps', { name: 'Late', projectId }, keyed('freed'));
    expectFailure(await create('proj_unknown'), 404, 'not_found');
    dataOf(await create(target.projectId), 201);
  });

  it('refuses a key that is no header value of 1 to 255 characters', async () => {
    expectInvalid(
      await api.post('/projects', { name: 'x' }, keyed('x'.repeat(256))),
      'Idempotency-Key',
    );
  });

  it('shows a new API key once only', async () => {
    const create = () => api.post('/api/v1/api-keys', { name: 'Once' }, keyed('once'));
    const first = dataOf<{ id: string; key: string }>(await create(), 201);
    expect(dataOf(await create(), 201)).toEqual({ ...first, key: null });
    const rotate = () => api.post(`/api/v1/api-keys/${first.id}/rotate`, {}, keyed('rotate'));
    const rotated = dataOf<{ id: string }>(await rotate(), 201);
    expect(dataOf(await rotate(), 201)).toEqual({ ...rotated, key: null });
  });

  it('shows a new link to the portal once only', async () => {
    const body = { expiresInSeconds: 60, capabilities: [] };
    const create = () => api.post(`/api/v1/apps/${target.appId}/portal-links`, body, keyed('link'));
    const first = dataOf<object>(await create(), 201);
    expect(dataOf(await create(), 201)).toEqual({ ...first, url: null });
  });

  it('shows the secret of a webhook again, and the audit log has it as a read', async () => {
    const create = () => api.post('/webhooks', { url, appId: target.appId }, keyed('webhook'));
    const first = dataOf<{ id: string; secret: string }>(await create(), 201);
    expect(dataOf(await create(), 201)).toEqual(first);
    const path = `/api/v1/audit-events?targetId=${first.id}`;
    const events = dataOf<{ action: string; changes: object[] }[]>(await api.get(path));
    expect(events).toMatchObject([
      { action: 'webhook.secrets_read', changes: [] },
      { action: 'webhook.created' },
    ]);
  });

  it('rotates a secret once', async () => {
    const rotate = () =>
      api.post(`/api/v1/webhooks/${target.webhookId}/rotate-secret`, {}, keyed('rotate'));
    const first = dataOf<{ secret: string }>(await rotate());
    expect(dataOf(await rotate())).toEqual(first);
    const now = dataOf<{ secret: string }>(await api.get(`/webhooks/${target.webhookId}`));
    expect(now.secret).toBe(first.secret);
  });

  it('sends a test message once', async () => {
    const test = () => api.post(`/api/v1/webhooks/${target.webhookId}/test`, {}, keyed('test'));
    const first = dataOf<{ messageId: string }>(await test(), 202);
    expect(dataOf(await test(), 202)).toEqual(first);
  });

  it('counts apart for a caller who sees a part of the company only', async () => {
    const make = async (appId: string): Promise<ApiClient> => {
      const made = dataOf<{ key: string }>(
        await api.post('/api/v1/api-keys', { name: 'Of an app', appId }),
        201,
      );
      return createApiClient(posthorn.baseUrl, made.key);
    };
    const create = (by: ApiClient) =>
      by.post('/api/v1/api-keys', { name: 'Apart' }, keyed('apart'));
    const other = await api.createTarget(url);
    const answers = [await make(target.appId), await make(other.appId)].map(create);
    const [ofFirst, ofOther] = await Promise.all(answers);
    expect(ofFirst?.body.data).toMatchObject({ appId: target.appId });
    expect(ofOther?.body.data).toMatchObject({ appId: other.appId });
  });
});

describe('a repeat after a gateway ended before it stored the response', () => {
  let mongo: MongoConnection;

  beforeAll(async () => {
    mongo = await connectMongo(posthorn.env.MONGODB_URL, 'test');
  });

  afterAll(() => mongo.close());

  /** As if the gateway had ended right after the creation. */
  async function forgetResponse(key: string): Promise<void> {
    const claim = { companyId: posthorn.companyId, _id: { $regex: `\n${key}$` } };
    const set = { $set: { status: 'interrupted' } };
    const { modifiedCount } = await mongo.db
      .collection<{ _id: string; companyId: string }>('idempotencyKeys')
      .updateOne(claim, set);
    expect(modifiedCount).toBe(1);
  }

  it.each<[string, () => [path: string, body: object], object?]>([
    ['project', () => ['/projects', { name: 'P' }]],
    ['app', () => ['/apps', { name: 'A', projectId: target.projectId }]],
    ['webhook', () => ['/webhooks', { url, appId: target.appId }]],
    ['API key', () => ['/api/v1/api-keys', { name: 'K' }], { key: null }],
    [
      'portal link',
      () => [
        `/api/v1/apps/${target.appId}/portal-links`,
        { expiresInSeconds: 60, capabilities: [] },
      ],
      { url: null },
    ],
    ['signing key', () => ['/api/v1/signing-keys/rotate', {}]],
    ['test message', () => [`/api/v1/webhooks/${target.webhookId}/test`, {}]],
    [
      'resend',
      () => [
        `/api/v1/webhooks/${target.webhookId}/resend-failed`,
        { since: '2026-01-01T00:00:00Z' },
      ],
    ],
  ])('finds the %s that was created', async (name, asked, hidden = {}) => {
    const key = `found ${name}`;
    const [path, body] = asked();
    const first = await api.post(path, body, keyed(key));
    await forgetResponse(key);
    const again = await api.post(path, body, keyed(key));
    expect(first.body.success).toBe(true);
    expect([again.status, isReplayed(again)]).toEqual([first.status, false]);
    const created = first.body.data as Record<string, unknown>;
    expect(again.body.data).toMatchObject({ id: created.id, ...hidden });
    const last = await api.post(path, body, keyed(key));
    expect([last.body.data, isReplayed(last)]).toEqual([again.body.data, true]);
  });

  it('does not bring the secret of an earlier rotation back [security]', async () => {
    const path = `/api/v1/webhooks/${target.webhookId}/rotate-secret`;
    // A claim whose request has ended has no seed for a generated secret any more.
    const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
    const rotate = (body: object, key: string) =>
      api.post(path, { graceSeconds: 0, ...body }, keyed(key));
    const rotateFirst = () => rotate({ secret }, 'first rotation');
    expect(dataOf(await rotateFirst())).toMatchObject({ secret });
    await forgetResponse('first rotation');
    const later = dataOf<{ secret: string }>(await rotate({}, 'second rotation'));
    expect(dataOf(await rotateFirst())).toEqual(later);
    expect(dataOf(await api.get(`/webhooks/${target.webhookId}`))).toMatchObject(later);
  });
});
