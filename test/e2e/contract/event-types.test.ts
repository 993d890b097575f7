import { beforeAll, describe, expect, it } from '@jest/globals';
import { type ApiAnswer, createApiClient } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import {
  aTime,
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { createSessionClient, makePortalLink, openLink } from '../../support/api/session-client.ts';
import { useCompany } from '../../support/process/use-company.ts';

interface ShownType {
  name: string;
  schema: object | null;
  schemaVersion: number;
  example: object | null;
  createdAt: string;
  updatedAt: string;
}

const SCHEMA = {
  type: 'object',
  required: ['amount'],
  properties: { amount: { type: 'number', minimum: 0 } },
};

describe('Event types (C28)', () => {
  const { posthorn } = useCompany('contract');
  let make: Resources;
  let projectId: string;
  let path: string;

  beforeAll(async () => {
    make = createResources(posthorn.api);
    ({ id: projectId } = await make.project());
    path = `/api/v1/projects/${projectId}/event-types`;
  });

  const create = (fields: object): Promise<ApiAnswer> => posthorn.api.post(path, fields);
  const get = (name: string, query = ''): Promise<ApiAnswer> =>
    posthorn.api.get(`${path}/${encodeURIComponent(name)}${query}`);
  const put = (name: string, fields: object, query = ''): Promise<ApiAnswer> =>
    posthorn.api.put(`${path}/${encodeURIComponent(name)}${query}`, fields);
  const namesIn = (answer: ApiAnswer): string[] =>
    dataOf<ShownType[]>(answer).map(({ name }) => name);

  it('are created with their defaults, and shown with everything that was given', async () => {
    const plain = dataOf<ShownType>(await create({ name: 'plain' }), 201);
    const defaults = {
      description: '',
      group: null,
      schema: null,
      schemaVersion: 1,
      example: null,
      deprecated: false,
      archived: false,
    };
    expect(plain).toEqual({ name: 'plain', ...defaults, createdAt: aTime, updatedAt: aTime });
    const given = {
      name: 'order/paid:v1',
      description: 'An order is paid.\nOnce.',
      group: 'Orders',
      schema: SCHEMA,
      example: { amount: 1.5, nested: { '': [null] } },
      deprecated: true,
    };
    const made = dataOf<ShownType>(await create(given), 201);
    expect(made).toEqual({ ...plain, ...given, createdAt: made.createdAt, updatedAt: aTime });
    expect(dataOf(await get('order/paid:v1'))).toEqual(made);
  });

  it('have one name each in a project, which never changes', async () => {
    dataOf(await create({ name: 'taken' }), 201);
    expectFailure(await create({ name: 'taken' }), 409, 'event_type_exists');
    const { id: otherId } = await make.project();
    const other = `/api/v1/projects/${otherId}/event-types`;
    dataOf(await posthorn.api.post(other, { name: 'taken' }), 201);
    expectInvalid(await put('taken', { name: 'other' }), 'name');
    for (const name of ['order.*', '', '..', 'x'.repeat(129), 'ü']) {
      expectInvalid(await create({ name }), 'name');
    }
    const wrong = {
      schema: { properties: { a: { typ: 1 } } },
      example: [],
      group: '',
      archived: 1,
    };
    const answer = await create({ name: 'wrong', ...wrong });
    expectInvalid(answer, 'schema.properties.a.typ', 'example', 'group', 'archived');
  });

  it('are made once for each idempotency key', async () => {
    const key = { 'idempotency-key': 'once' };
    const [first, again] = [
      await posthorn.api.post(path, { name: 'once' }, key),
      await posthorn.api.post(path, { name: 'once' }, key),
    ];
    expect(dataOf(again, 201)).toEqual(dataOf(first, 201));
  });

  it('are listed by name, by group and by whether they are archived', async () => {
    const { id } = await make.project();
    const own = `/api/v1/projects/${id}/event-types`;
    for (const fields of [
      { name: 'b', group: 'G' },
      { name: 'a', archived: true },
      { name: 'c' },
    ]) {
      dataOf(await posthorn.api.post(own, { ...fields, schema: SCHEMA }), 201);
    }
    const list = async (query: string) => namesIn(await posthorn.api.get(`${own}?${query}`));
    expect(await list('')).toEqual(['a', 'b', 'c']);
    expect(await list('group=G')).toEqual(['b']);
    expect(await list('archived=true')).toEqual(['a']);
    expect(await list('archived=false&skip=1&limit=1')).toEqual(['c']);
    const [listed] = dataOf<object[]>(await posthorn.api.get(own));
    expect(Object.keys(listed ?? {})).not.toContain('schema');
  });

  it('have another version with each other schema, and show the earlier ones', async () => {
    dataOf(await create({ name: 'versions', schema: SCHEMA }), 201);
    const next = { ...SCHEMA, required: [] };
    dataOf(await put('versions', { description: 'the same schema', schema: SCHEMA }));
    expect(dataOf(await put('versions', { schema: next }))).toMatchObject({ schemaVersion: 2 });
    expect(dataOf(await put('versions', { schema: null }))).toMatchObject({ schemaVersion: 3 });
    const shown = dataOf<ShownType>(await get('versions'));
    expect(shown).toMatchObject({ schema: null, schemaVersion: 3, description: 'the same schema' });
    expect(dataOf(await get('versions', '?version=1'))).toEqual({
      ...shown,
      schema: SCHEMA,
      schemaVersion: 1,
    });
    expect(dataOf(await get('versions', '?version=2'))).toMatchObject({ schema: next });
    expectNotFound(await get('versions', '?version=4'));
    expectInvalid(await get('versions', '?version=0'), 'version');
  });

  it('are updated in part, created by an update that asks for it, and deleted', async () => {
    expectNotFound(await put('upserted', { group: 'G' }));
    const upsert = '?upsert=true';
    const made = dataOf(await put('upserted', { group: 'G' }, upsert), 201);
    expect(made).toMatchObject({ name: 'upserted', group: 'G', description: '' });
    const again = dataOf(await put('upserted', { name: 'upserted', deprecated: true }, upsert));
    expect(again).toMatchObject({ group: 'G', deprecated: true });
    expect(dataOf(await put('upserted', { group: null }))).toMatchObject({ group: null });
    expectInvalid(await put('upserted', { name: 'other' }, upsert), 'name');
    expectInvalid(await put('or der', {}, upsert), 'name');
    expectDeleted(await posthorn.api.delete(`${path}/upserted`));
    expectNotFound(await get('upserted'));
    expectNotFound(await posthorn.api.delete(`${path}/upserted`));
  });

  it('of one name that several requests create at once are one', async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => put('at.once', { description: String(n) }, '?upsert=true')),
    );
    const statuses = answers.map(({ status }) => status).sort((one, other) => one - other);
    expect(statuses).toEqual([200, 200, 200, 201]);
  });

  it('are in the audit log, without the values of schema and example', async () => {
    dataOf(await create({ name: 'audited', schema: SCHEMA, example: { amount: 1 } }), 201);
    dataOf(await put('audited', { schema: {}, group: 'G' }));
    dataOf(await put('audited.too', {}, '?upsert=true'), 201);
    expectDeleted(await posthorn.api.delete(`${path}/audited`));
    const target = (name: string) => ({ kind: 'eventType', id: `${projectId}/${name}` });
    const events = await readAuditEvents(posthorn.api, { targetId: `${projectId}/audited` });
    expect(events.map(({ action }) => action)).toEqual([
      'event_type.deleted',
      'event_type.updated',
      'event_type.created',
    ]);
    expect(events[1]).toMatchObject({ target: target('audited'), outcome: 'done' });
    expect(events[1]?.changes).toEqual([
      { field: 'schema', before: '********', after: '********' },
      { field: 'schemaVersion', before: 1, after: 2 },
      { field: 'group', before: null, after: 'G' },
    ]);
    const [made] = await readAuditEvents(posthorn.api, { targetId: `${projectId}/audited.too` });
    expect(made).toMatchObject({ action: 'event_type.created', target: target('audited.too') });
  });

  it('may be read and not changed by a key of one app', async () => {
    const { id: appId } = await make.app({ projectId });
    const answer = await posthorn.api.post('/api/v1/api-keys', { name: 'One app', appId });
    const { key } = dataOf<{ key: string }>(answer, 201);
    const api = createApiClient(posthorn.baseUrl, key, { companyid: posthorn.companyId });
    dataOf(await create({ name: 'read' }), 201);
    dataOf(await api.get(`${path}/read`));
    expectFailure(await api.put(`${path}/read`, {}), 403, 'insufficient_scope');
    expectFailure(await api.put(`${path}/new?upsert=true`, {}), 403, 'insufficient_scope');
    expectFailure(await api.post(path, { name: 'new' }), 403, 'insufficient_scope');
    expectFailure(await api.delete(`${path}/read`), 403, 'insufficient_scope');
    const { id: otherId } = await make.project();
    expectNotFound(await api.get(`/api/v1/projects/${otherId}/event-types`));
  });

  it('that are not archived are shown to the apps of their project, and to visitors of the portal', async () => {
    const { id } = await make.project();
    const { id: appId } = await make.app({ projectId: id });
    for (const fields of [
      { name: 'seen', example: { a: 1 } },
      { name: 'gone', archived: true },
    ]) {
      dataOf(await posthorn.api.post(`/api/v1/projects/${id}/event-types`, fields), 201);
    }
    const link = await makePortalLink(posthorn.api, appId, { capabilities: ['view'] });
    const cookie = await openLink(posthorn.baseUrl, link);
    const visitor = createSessionClient(posthorn.baseUrl, cookie, `portal ${link.id}`);
    for (const api of [posthorn.api, visitor]) {
      expect(namesIn(await api.get(`/api/v1/apps/${appId}/event-types`))).toEqual(['seen']);
      const seen = dataOf(await api.get(`/api/v1/apps/${appId}/event-types/seen`));
      expect(seen).toMatchObject({ example: { a: 1 } });
      expectNotFound(await api.get(`/api/v1/apps/${appId}/event-types/gone`));
    }
    const ofProject = await visitor.get(`/api/v1/projects/${id}/event-types`);
    expectFailure(ofProject, 404, 'route_not_found');
  });

  it('go with their project, after which none can be made', async () => {
    const { id } = await make.project();
    const own = `/api/v1/projects/${id}/event-types`;
    dataOf(await posthorn.api.post(own, { name: 'gone' }), 201);
    expectDeleted(await posthorn.api.delete(`/api/v1/projects/${id}`));
    for (const each of ['', '/gone']) expectNotFound(await posthorn.api.get(own + each));
    expectNotFound(await posthorn.api.post(own, { name: 'late' }));
  });

  it('have an example that meets the schema', async () => {
    const wrong = await create({ name: 'wrong.example', schema: SCHEMA, example: { amount: -1 } });
    expectInvalid(wrong, 'example.amount');
    const endless = await create({ name: 'endless', schema: { $ref: '#' } });
    expectInvalid(endless, 'schema');
    dataOf(await create({ name: 'example', example: { amount: 'text' } }), 201);
    expectInvalid(await put('example', { schema: SCHEMA }), 'example.amount');
    dataOf(await put('example', { schema: SCHEMA, example: { amount: 1 } }));
  });

  describe('by the policy of a project (C28.6)', () => {
    let appId: string;
    let project: string;

    beforeAll(async () => {
      ({ id: project } = await make.project({ eventTypePolicy: 'validated' }));
      ({ id: appId } = await make.app({ projectId: project }));
      const types = [
        { name: 'order.paid', schema: SCHEMA, example: { amount: 7 } },
        { name: 'order.free' },
        { name: 'order.gone', archived: true },
      ];
      for (const fields of types) {
        dataOf(await posthorn.api.post(`/api/v1/projects/${project}/event-types`, fields), 201);
      }
    });

    const send = (fields: object, headers = {}): Promise<ApiAnswer> =>
      posthorn.api.post('/webhook-messages', { appId, payload: {}, ...fields }, headers);

    it('are the only ones of messages, whose payloads meet the schema', async () => {
      for (const eventType of [undefined, 'order.other', 'order.gone']) {
        const answer = await send({ eventType });
        expectFailure(answer, 422, 'event_type_unknown', ['eventType']);
      }
      const wrong = await send({ eventType: 'order.paid', payload: { amount: 'much' } });
      expectFailure(wrong, 422, 'payload_invalid', ['payload.amount']);
      dataOf(await send({ eventType: 'order.paid', payload: { amount: 1 } }), 202);
      dataOf(await send({ eventType: 'order.free' }), 202);
    });

    it('refuse messages of a batch alone, and a repeat of an accepted message never', async () => {
      const messages = [{ amount: 1 }, {}, { amount: 2 }].map((payload) => {
        return { appId, eventType: 'order.paid', payload };
      });
      const answer = await posthorn.api.post('/api/v1/webhook-messages/batch', { messages });
      const { results } = dataOf<{ results: object[] }>(answer, 202);
      const refused = { code: 'payload_invalid', message: 'payload.amount: is required' };
      expect(results).toMatchObject([{ status: 'accepted' }, refused, { status: 'accepted' }]);
      const key = { 'idempotency-key': 'before it was archived' };
      const first = dataOf<{ id: string }>(await send({ eventType: 'order.free' }, key), 202);
      const free = `/api/v1/projects/${project}/event-types/order.free`;
      dataOf(await posthorn.api.put(free, { archived: true }));
      const archived = await send({ eventType: 'order.free' });
      expectFailure(archived, 422, 'event_type_unknown', ['eventType']);
      const again = dataOf<{ id: string }>(await send({ eventType: 'order.free' }, key), 202);
      expect(again.id).toBe(first.id);
      dataOf(await posthorn.api.put(free, { archived: false }));
    });

    it('are selected by webhooks, and tested with their example', async () => {
      const url = 'http://127.0.0.1:1/hook';
      const eventTypes = ['order.paid', 'order.*', 'invoice.*', 'order.gone'];
      const wrong = await posthorn.api.post('/webhooks', { appId, url, eventTypes });
      expectInvalid(wrong, 'eventTypes.2', 'eventTypes.3');
      const { id } = await make.webhook({ appId, url, eventTypes: ['order.*', 'order.free'] });
      const webhook = `/api/v1/webhooks/${id}`;
      expectInvalid(
        await posthorn.api.put(webhook, { eventTypes: ['order.piad'] }),
        'eventTypes.0',
      );
      const test = `${webhook}/test`;
      const { messageId } = dataOf<{ messageId: string }>(
        await posthorn.api.post(test, { eventType: 'order.paid' }),
        202,
      );
      const sent = await posthorn.api.get(`/api/v1/webhook-messages/${messageId}`);
      expect(dataOf(sent)).toMatchObject({ eventType: 'order.paid', payload: '{"amount":7}' });
      expectNotFound(await posthorn.api.post(test, { eventType: 'order.gone' }));
      dataOf(await posthorn.api.post(test, {}), 202);
    });

    it('count as before once it is open', async () => {
      dataOf(await posthorn.api.put(`/api/v1/projects/${project}`, { eventTypePolicy: 'open' }));
      dataOf(await send({ eventType: 'order.other' }), 202);
    });
  });
});
