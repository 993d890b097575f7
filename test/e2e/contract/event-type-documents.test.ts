import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import products from '@posthorn/domain/openapi/openapi.products.json' with { type: 'json' };
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { type ApiAnswer, createApiClient } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import { dataOf, expectFailure, expectInvalid } from '../../support/api/expect-answers.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { killHard, type OwnCompany } from '../../support/process/posthorn.ts';
import { joinShared } from '../../support/process/shared-posthorn.ts';
import { startStoreProxy } from '../../support/process/store-proxy.ts';
import { eventually } from '../../support/time/eventually.ts';

let posthorn: OwnCompany;
let make: Resources;
let projectId: string;

beforeAll(async () => {
  posthorn = await joinShared('contract');
  make = createResources(posthorn.api);
  ({ id: projectId } = await make.project({ name: 'Shop {}' }));
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
}, 60_000);

interface Imported {
  created: number;
  updated: number;
  archived: number;
  unchanged: number;
  changes: { name: string; change: string }[];
}

interface Listed {
  name: string;
  archived: boolean;
}

/** A webhook of a document. */
const webhook = (description: string, content: object = {}) => ({
  post: {
    tags: ['Orders'],
    description,
    requestBody: { content: { 'application/json': content } },
  },
});

const documentOf = (webhooks: object) => ({
  openapi: '3.1.0',
  info: { title: 'Shop', version: '1' },
  webhooks,
  components: { schemas: { Amount: { type: 'number', minimum: 0 } } },
});

const PAID = webhook('An order was paid.', {
  schema: {
    type: 'object',
    required: ['amount'],
    properties: { amount: { $ref: '#/components/schemas/Amount' } },
  },
  example: { amount: 12.5 },
});

const importInto = (project: string, document: object, options: object = {}): Promise<ApiAnswer> =>
  posthorn.api.post(`/api/v1/projects/${project}/import-event-types`, { document, ...options });

const imported = async (document: object, options?: object): Promise<Imported> =>
  dataOf(await importInto(projectId, document, options));

const exported = async (project = projectId): Promise<{ webhooks: object }> =>
  dataOf(await posthorn.api.get(`/api/v1/projects/${project}/export-event-types`));

async function listed(project = projectId): Promise<Listed[]> {
  return dataOf(await posthorn.api.get(`/api/v1/projects/${project}/event-types`));
}

const NOTHING = { created: 0, updated: 0, archived: 0, changes: [] };

describe('An import of event types (C28)', () => {
  it('says with dryRun what it would change, and changes nothing', async () => {
    const document = documentOf({ 'order.paid': PAID, 'order/sent': webhook('Sent.') });
    expect(await imported(document, { dryRun: true })).toEqual({
      ...NOTHING,
      created: 2,
      unchanged: 0,
      changes: [
        { name: 'order.paid', change: 'created' },
        { name: 'order/sent', change: 'created' },
      ],
    });
    expect(await listed()).toEqual([]);
    const events = await readAuditEvents(posthorn.api, { action: 'event_type.imported' });
    expect(events).toEqual([]);
  });

  it('makes an event type of each webhook, with what its schema refers to', async () => {
    const document = documentOf({ 'order.paid': PAID, 'order/sent': webhook('Sent.') });
    expect(await imported(document)).toMatchObject({ created: 2, unchanged: 0 });
    const address = `/api/v1/projects/${projectId}/event-types/order.paid`;
    expect(dataOf(await posthorn.api.get(address))).toMatchObject({
      description: 'An order was paid.',
      group: 'Orders',
      schema: {
        properties: { amount: { $ref: '#/$defs/Amount' } },
        $defs: { Amount: { type: 'number', minimum: 0 } },
      },
      schemaVersion: 1,
      example: { amount: 12.5 },
    });
    const [event] = await readAuditEvents(posthorn.api, { action: 'event_type.imported' });
    expect(event).toMatchObject({ outcome: 'done', target: { kind: 'project', id: projectId } });
    expect(event?.changes).toEqual([{ field: 'count', before: null, after: 2 }]);
  });

  it('changes nothing the second time, nor with what was exported', async () => {
    const document = documentOf({ 'order.paid': PAID, 'order/sent': webhook('Sent.') });
    expect(await imported(document)).toEqual({ ...NOTHING, unchanged: 2 });
    const found = await exported();
    expect(Object.keys(found.webhooks)).toEqual(['order.paid', 'order/sent']);
    expect(await imported(found, { archiveMissing: true })).toEqual({ ...NOTHING, unchanged: 2 });
  });

  it('archives what is missing when it is told to, and brings it back', async () => {
    const one = documentOf({ 'order.paid': { ...PAID, post: { ...PAID.post, deprecated: true } } });
    expect(await imported(one)).toMatchObject({ updated: 1, archived: 0, unchanged: 1 });
    expect(await imported(one, { archiveMissing: true })).toEqual({
      ...NOTHING,
      archived: 1,
      unchanged: 1,
      changes: [{ name: 'order/sent', change: 'archived' }],
    });
    expect((await listed()).map(({ archived }) => archived)).toEqual([false, true]);
    expect(Object.keys((await exported()).webhooks)).toEqual(['order.paid']);
    const both = documentOf({ ...one.webhooks, 'order/sent': webhook('Sent.') });
    expect(await imported(both)).toMatchObject({ updated: 1, unchanged: 1 });
    expect((await listed()).map(({ archived }) => archived)).toEqual([false, false]);
  });

  it('is refused with every problem of the document, and then writes nothing', async () => {
    const { id } = await make.project();
    const document = documentOf({
      'order.paid': PAID,
      größe: webhook('x'),
      'order.sent': webhook('x', { schema: { $ref: 'other.json' }, example: [] }),
      'order.lost': {},
    });
    const answer = await importInto(id, document);
    const sent = 'document.webhooks.order.sent.post.requestBody.content.application/json';
    expectInvalid(
      answer,
      'document.webhooks.größe',
      'document.webhooks.order.lost',
      `${sent}.example`,
      `${sent}.schema.$ref`,
    );
    expect(await listed(id)).toEqual([]);
    expectInvalid(await importInto(id, { openapi: '2.0' }), 'document.openapi');
    expectInvalid(await importInto(id, []), 'document');
  });

  it('is refused where an example does not meet its schema', async () => {
    const content = { schema: { type: 'object', required: ['a'] }, example: { b: 1 } };
    const document = documentOf({ first: PAID, wrong: webhook('x', content) });
    const { id } = await make.project();
    const path = 'document.webhooks.wrong.post.requestBody.content.application/json.example.a';
    expectInvalid(await importInto(id, document), path);
    expect(await listed(id)).toEqual([]);
  });

  it('of three public products has their names, groups, schemas and examples', async () => {
    for (const { document, eventTypes } of products) {
      const { id } = await make.project();
      const { created } = dataOf<Imported>(await importInto(id, document));
      expect(created).toBe(eventTypes.length);
      for (const each of eventTypes) {
        const address = `/api/v1/projects/${id}/event-types/${each.name}`;
        expect(dataOf(await posthorn.api.get(address))).toMatchObject(each);
      }
      const again = dataOf<Imported>(await importInto(id, await exported(id)));
      expect(again).toEqual({ ...NOTHING, unchanged: eventTypes.length });
    }
  });

  it('is for keys of the whole company, and for projects that exist', async () => {
    expectFailure(await importInto('proj_unknown', documentOf({})), 404, 'not_found');
    const { id: appId } = await make.app({ projectId });
    const made = await posthorn.api.post('/api/v1/api-keys', {
      name: 'One',
      appId,
      scopes: ['webhooks:write'],
    });
    const api = createApiClient(posthorn.baseUrl, dataOf<{ key: string }>(made, 201).key);
    const address = `/api/v1/projects/${projectId}`;
    const answer = await api.post(`${address}/import-event-types`, { document: documentOf({}) });
    expectFailure(answer, 403, 'insufficient_scope');
  });

  it('takes a document of a megabyte, and sends a long export part by part', async () => {
    const { id } = await make.project();
    const text = 'x'.repeat(1_000);
    const many = Array.from({ length: 800 }, (_, n) => [`type.${n}`, webhook(text)]);
    const document = documentOf(Object.fromEntries(many) as object);
    expect(dataOf<Imported>(await importInto(id, document))).toMatchObject({ created: 800 });
    const found = await exported(id);
    expect(Object.keys(found.webhooks)).toHaveLength(800);
    const again = dataOf<Imported>(await importInto(id, found));
    expect(again).toEqual({ ...NOTHING, unchanged: 800 });
  });

  it('is completed by a repeat when its gateway was killed between the writes', async () => {
    const { id } = await make.project();
    const many = Array.from({ length: 100 }, (_, n) => [`type.${100 + n}`, webhook(`Type ${n}`)]);
    const document = documentOf(Object.fromEntries(many) as object);
    const proxy = await startStoreProxy(posthorn.env.MONGODB_URL);
    const [port = 0] = await freePorts(1);
    const settings = { MONGODB_URL: proxy.url, PORT: String(port) };
    const gateway = await posthorn.startProcess('gateway', settings);
    const own = createApiClient(`http://127.0.0.1:${port}`, posthorn.apiKey);
    // In the second write.
    proxy.freezeAt('Type 70');
    const sent = own.post(`/api/v1/projects/${id}/import-event-types`, { document });
    const ended = sent.catch(() => undefined);
    await eventually('a part of the event types', async () => (await listed(id)).length >= 60);
    await Promise.all([proxy.close(), killHard(gateway)]);
    await ended;
    const part = (await listed(id)).length;
    expect(part).toBeLessThan(100);
    const rest = dataOf<Imported>(await importInto(id, document));
    expect(rest).toMatchObject({ created: 100 - part, updated: 0, unchanged: part });
    expect(await listed(id)).toHaveLength(100);
  });
});
