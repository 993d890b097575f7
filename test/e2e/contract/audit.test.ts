import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import {
  AUDIT_EVENTS,
  readAuditEvents,
  type ShownAuditEvent,
} from '../../support/api/audit-events.ts';
import {
  anId,
  aTime,
  dataOf,
  expectFailure,
  expectInvalid,
} from '../../support/api/expect-answers.ts';
import { createResources, type ShownProject } from '../../support/api/resources.ts';
import { createCompany } from '../../support/process/companies.ts';
import { ADMIN, killHard, type OwnCompany } from '../../support/process/posthorn.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startStoreProxy, type StoreProxy } from '../../support/process/store-proxy.ts';
import { useCompany } from '../../support/process/use-company.ts';
import { type Receiver, startReceiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('The audit log [security]', () => {
  const MASK = '********';

  let posthorn: OwnCompany;
  let receiver: Receiver;
  let api: ApiClient;
  let ids: Record<
    | 'projectId'
    | 'appId'
    | 'webhookId'
    | 'keyId'
    | 'newKeyId'
    | 'signingKeyId'
    | 'messageId'
    | 'deliveryId'
    | 'resendId',
    string
  >;
  /** Every secret that was given or returned. */
  const secrets: string[] = [];
  /** What was done, oldest first: the id of the request, and its status. */
  const requests = new Map<string, number>();

  /** Sends a request with an id of its own; returns its `data`. */
  async function send(
    method: string,
    path: string,
    body?: object,
    status = 200,
  ): Promise<Record<string, unknown>> {
    const requestId = `audit-${requests.size}-${posthorn.companyId}`;
    const answer = await api.request(method, path, body, { 'x-request-id': requestId });
    expect([method, path, answer.status]).toEqual([method, path, status]);
    requests.set(requestId, status);
    return (answer.body.data ?? {}) as Record<string, unknown>;
  }

  beforeAll(async () => {
    posthorn = await joinShared('contract');
    receiver = await startReceiver();
    api = createApiClient(posthorn.baseUrl, posthorn.apiKey, { companyid: posthorn.companyId });
    await doEverything();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  });

  /** Does everything that a client can do and that is recorded. */
  async function doEverything(): Promise<void> {
    const id = (data: Record<string, unknown>) => String(data.id);
    const projectId = id(await send('POST', '/projects', { name: 'Old' }, 201));
    await send('PUT', `/projects/${projectId}`, { name: 'New' });
    const appId = id(await send('POST', '/apps', { name: 'App', projectId }, 201));
    await send('PUT', `/apps/${appId}`, { storeResponses: false });
    const url = `${receiver.url}/?token=hush-url`;
    const customHeaders = [{ key: 'X-Tenant', value: 'hush-header' }];
    const basic = {
      authMethod: 'basic',
      basicAuthUsername: 'hush-user',
      basicAuthPassword: 'hush-basic',
    };
    const fields = { appId, url, customHeaders, hmacSecret: 'hush-hmac-secret' };
    const webhook = await send('POST', '/webhooks', fields, 201);
    const webhookId = id(webhook);
    await send('PUT', `/webhooks/${webhookId}`, { url: receiver.url, ...basic });
    const rotated = await send('POST', `/api/v1/webhooks/${webhookId}/rotate-secret`, {});
    await send('GET', `/webhooks/${webhookId}`);
    await send('GET', '/webhooks');
    for (const path of ['/webhooks', `/webhooks/${webhookId}`]) {
      dataOf(await api.get(`${path}?secrets=false`));
    }
    const delivery = await send('POST', `/api/v1/webhooks/${webhookId}/test`, undefined, 202);
    const deliveryId = id(delivery);
    await createResources(api).deliveryOnce('delivered', deliveryId);
    await send('POST', `/api/v1/deliveries/${deliveryId}/resend`);
    const { messageId } = delivery as unknown as { messageId: string };
    await send('POST', `/api/v1/deliveries/${deliveryId}/erase-responses`);
    await send('POST', `/api/v1/webhook-messages/${messageId}/erase-payload`);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    await send('POST', `/api/v1/webhooks/${webhookId}/resend-failed`, { since }, 202);
    const resend = await send('POST', `/api/v1/apps/${appId}/resend-failed`, { since }, 202);
    const resendId = id(resend);
    await send('POST', `/api/v1/resends/${resendId}/abort`);
    const key = await send('POST', '/api/v1/api-keys', { name: 'Key', scopes: ['read'] }, 201);
    const keyId = id(key);
    const fresh = await send('POST', `/api/v1/api-keys/${keyId}/rotate`, undefined, 201);
    const signingKeyId = id(await send('POST', '/api/v1/signing-keys/rotate', undefined, 201));
    await send('DELETE', `/api/v1/api-keys/${keyId}`);
    await send('DELETE', `/webhooks/${webhookId}`);
    await send('DELETE', `/webhooks/${webhookId}`, undefined, 404);
    await send('DELETE', `/apps/${appId}`);
    await send('DELETE', `/projects/${projectId}`);
    ids = {
      projectId,
      appId,
      webhookId,
      keyId,
      newKeyId: id(fresh),
      signingKeyId,
      messageId,
      deliveryId,
      resendId,
    };
    secrets.push('hush', ...[webhook.secret, rotated.secret, key.key, fresh.key].map(String));
  }

  const briefly = ({ action, target, outcome, code }: ShownAuditEvent) => [
    action,
    target.id,
    code ?? outcome,
  ];

  let events: ShownAuditEvent[];

  beforeAll(async () => {
    events = (await readAuditEvents(api)).reverse();
  });

  const changesOf = (action: string) =>
    events.find((each) => each.action === action && each.outcome === 'done')?.changes;

  it('has one event for each request, in order, with its outcome', () => {
    const { projectId, appId, webhookId, keyId, signingKeyId } = ids;
    const { messageId, deliveryId, resendId } = ids;
    expect(events.map(briefly)).toEqual([
      ['company.created', posthorn.companyId, 'done'],
      ['project.created', projectId, 'done'],
      ['project.updated', projectId, 'done'],
      ['app.created', appId, 'done'],
      ['app.updated', appId, 'done'],
      ['webhook.created', webhookId, 'done'],
      ['webhook.updated', webhookId, 'done'],
      ['webhook.secret_rotated', webhookId, 'done'],
      ['webhook.secrets_read', webhookId, 'done'],
      ['webhook.secrets_read', null, 'done'],
      ['webhook.tested', webhookId, 'done'],
      ['resend.started', deliveryId, 'done'],
      ['delivery.responses_erased', deliveryId, 'done'],
      ['message.payload_erased', messageId, 'done'],
      ['resend.started', webhookId, 'done'],
      ['resend.started', appId, 'done'],
      ['resend.aborted', resendId, 'done'],
      ['api_key.created', keyId, 'done'],
      ['api_key.rotated', keyId, 'done'],
      ['signing_key.rotated', signingKeyId, 'done'],
      ['api_key.revoked', keyId, 'done'],
      ['webhook.deleted', webhookId, 'done'],
      ['webhook.deleted', webhookId, 'not_found'],
      ['app.deleted', appId, 'done'],
      ['project.deleted', projectId, 'done'],
    ]);
    const [byAdmin, ...byKey] = events;
    expect(byKey.map(({ requestId }) => requestId)).toEqual([...requests.keys()]);
    const ofKey = { actor: { kind: 'apiKey', keyId: anId('key') }, clientAddress: '127.0.0.1' };
    for (const each of byKey) expect(each).toMatchObject(ofKey);
    expect(byAdmin).toMatchObject({ actor: { kind: 'admin' }, clientAddress: null });
    for (const each of events) expect([each.createdAt, each.completedAt]).toEqual([aTime, aTime]);
  });

  it('shows changed fields, before and after', () => {
    expect(changesOf('project.updated')).toEqual([{ field: 'name', before: 'Old', after: 'New' }]);
    expect(changesOf('app.updated')).toMatchObject([{ field: 'storeResponses', before: null }]);
    expect(changesOf('webhook.updated')).toEqual([
      { field: 'url', before: `${receiver.url}/?token=${MASK}`, after: receiver.url },
      { field: 'authMethod', before: 'hmac', after: 'basic' },
      { field: 'hmacHeader', before: 'X-Service-Signature', after: null },
      { field: 'hmacSecret', before: MASK, after: null },
      { field: 'signatureAlgorithm', before: 'hmac-sha256', after: null },
      { field: 'basicAuthUsername', before: null, after: MASK },
      { field: 'basicAuthPassword', before: null, after: MASK },
    ]);
    expect(changesOf('webhook.secret_rotated')).toEqual([
      { field: 'secret', before: MASK, after: MASK },
      { field: 'graceSeconds', before: null, after: 86_400 },
    ]);
    expect(changesOf('api_key.rotated')).toContainEqual({
      field: 'newKeyId',
      before: null,
      after: ids.newKeyId,
    });
    expect(changesOf('app.deleted')).toContainEqual({
      field: 'name',
      before: 'App',
      after: null,
    });
    const reads = events.filter(({ action }) => action === 'webhook.secrets_read');
    expect(reads.map(({ count }) => count)).toEqual([1, 1]);
  });

  it('contains no secret', () => {
    const text = JSON.stringify(events);
    expect(secrets).toHaveLength(5);
    for (const secret of secrets) expect(text).not.toContain(secret);
  });

  it('is filtered by action, actor, target and time, and read page by page', async () => {
    const ofWebhook = events.filter(({ target }) => target.id === ids.webhookId);
    const filter = { targetId: ids.webhookId, limit: '3' };
    expect(await readAuditEvents(api, filter)).toEqual(ofWebhook.toReversed());
    const deleted = await readAuditEvents(api, { ...filter, action: 'webhook.deleted' });
    expect(deleted.map(({ code }) => code)).toEqual(['not_found', null]);
    expect(await readAuditEvents(api, { actor: 'admin' })).toEqual([events[0]]);
    expect(await readAuditEvents(api, { actor: ids.keyId })).toEqual([]);
    const [, from, , to] = events.map(({ createdAt }) => createdAt);
    const between = await readAuditEvents(api, { from: String(from), to: String(to) });
    const times = between.map(({ createdAt }) => createdAt);
    expect(times.every((time) => time >= String(from) && time <= String(to))).toBe(true);
    expect(between.map(({ id }) => id)).toContain(events[2]?.id);
    expectInvalid(await api.get(`${AUDIT_EVENTS}?action=unknown`), 'action');
  });

  it('is for keys with the scope admin of the whole company only', async () => {
    const { id: appId } = await createResources(api).app();
    const limited = [{ scopes: ['read', 'webhooks:write', 'keys:write'] }, { appId }];
    for (const rights of limited) {
      const made = dataOf<{ key: string }>(
        await api.post('/api/v1/api-keys', { name: 'Limited', ...rights }),
        201,
      );
      const theirs = createApiClient(posthorn.baseUrl, made.key);
      expectFailure(await theirs.get(AUDIT_EVENTS), 403, 'insufficient_scope');
    }
  });

  it('shows another company nothing of it', async () => {
    const other = await createCompany(posthorn, 'Other');
    const shown = await readAuditEvents(other.api);
    expect(shown.map(briefly)).toEqual([['company.created', other.companyId, 'done']]);
    expect(await readAuditEvents(other.api, { targetId: ids.webhookId })).toEqual([]);
    const cursor = String(events.at(-1)?.id);
    expect(await readAuditEvents(other.api, { cursor })).toEqual([]);
  });

  it('does not record reads without secrets', async () => {
    const key = await api.post('/api/v1/api-keys', { name: 'Reader', scopes: ['read'] });
    const { id: actor, key: text } = dataOf<{ id: string; key: string }>(key, 201);
    const reader = createApiClient(posthorn.baseUrl, text);
    dataOf(await reader.get('/webhooks'));
    expect(await readAuditEvents(api, { actor })).toEqual([]);
  });

  it('has what operators do, and is printed as one JSON object on each line', async () => {
    const { companyId, env } = posthorn;
    const admin = (...args: string[]) => runProgram(ADMIN, args, env);
    const made = JSON.parse(await admin('key', 'create', companyId, '--json')) as {
      keyId: string;
      apiKey: string;
    };
    const [shown] = await readAuditEvents(api, { actor: 'admin', limit: '1' });
    expect(shown).toMatchObject({ action: 'api_key.created', target: { id: made.keyId } });
    const since = String(events[1]?.createdAt);
    const text = await admin('audit-events', 'list', '--company', companyId, '--since', since);
    const printed = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as ShownAuditEvent);
    const listed = (await readAuditEvents(api, { from: since })).reverse();
    expect(printed).toEqual(listed.map((each) => ({ ...each, companyId })));
    expect(text).not.toContain(made.apiKey);
  });
});

/** The time of the completion, in the command that stores it: the name of the field, after the type of a date. */
const COMPLETION = '\tcompletedAt\0';

describe('A gateway that is killed after a change [security]', () => {
  const { posthorn } = useCompany('contract');
  let proxy: StoreProxy;

  beforeAll(async () => {
    proxy = await startStoreProxy(posthorn.env.MONGODB_URL);
  }, 120_000);

  afterAll(async () => {
    await proxy.close();
  });

  it('leaves a started event with the requested change', async () => {
    const { api, apiKey } = posthorn;
    const { id } = await createResources(api).project({ name: 'Old' });
    const [port = 0] = await freePorts(1);
    const settings = { MONGODB_URL: proxy.url, PORT: String(port) };
    const gateway = await posthorn.startProcess('gateway', settings);
    const slow = createApiClient(`http://127.0.0.1:${port}`, apiKey);
    proxy.freezeAt(COMPLETION);
    const sent = slow.put(`/projects/${id}`, { name: 'New' });
    const ended = sent.catch(() => undefined);
    await eventually('the change', async () => {
      const { name } = dataOf<ShownProject>(await api.get(`/projects/${id}`));
      return name === 'New';
    });
    // With all that is on its way to the store.
    await Promise.all([proxy.close(), killHard(gateway)]);
    await ended;
    const [event] = await readAuditEvents(api, { targetId: id, action: 'project.updated' });
    expect(event).toMatchObject({
      outcome: 'started',
      completedAt: null,
      changes: [{ field: 'name', before: null, after: 'New' }],
    });
  });
});
