import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { pathsOf, type Route } from '../../../services/gateway/src/http/route.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { readAuditEvents } from '../../support/api/audit-events.ts';
import { type BlockedKey, blockKey } from '../../support/api/blocked-key.ts';
import {
  anId,
  dataOf,
  expectDeleted,
  expectFailure,
  expectInvalid,
  expectNotFound,
} from '../../support/api/expect-answers.ts';
import { comparable, unknownLike } from '../../support/api/one-of-each.ts';
import {
  type Place,
  placesOf,
  readOperations,
  requestWith,
} from '../../support/api/request-places.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { routeTable } from '../../support/api/route-table.ts';
import { createSessionClient, makePortalLink, openLink } from '../../support/api/session-client.ts';
import { withCompanyId } from '../../support/process/companies.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

describe('Own ids', () => {
  const KINDS = ['projectId', 'appId', 'webhookId'] as const;
  type Tree = Record<(typeof KINDS)[number], string>;

  interface Shown {
    id: string;
    uid: string | null;
    name: string;
    metadata: Record<string, string>;
    updatedAt: string;
  }

  const { posthorn } = useCompany('contract');
  const receiver = useReceiver();
  const refusing = useReceiver();
  let api: ApiClient;
  let make: Resources;

  beforeAll(() => {
    refusing.answerWith(failing(Infinity));
    api = withCompanyId(posthorn);
    make = createResources(api);
  });

  const uniqueUid = (): string => `Own.id_${randomUUID()}`;

  /** Creates a project, an app and a webhook, and returns their ids and their uids. */
  async function createTree(): Promise<{ ids: Tree; uids: Tree }> {
    const uids = { projectId: uniqueUid(), appId: uniqueUid(), webhookId: uniqueUid() };
    const { id: projectId } = await make.project({ uid: uids.projectId });
    const { id: appId } = await make.app({ projectId, uid: uids.appId });
    const url = receiver.url;
    const { id: webhookId } = await make.webhook({ appId, url, uid: uids.webhookId });
    return { ids: { projectId, appId, webhookId }, uids };
  }

  /** Creates such a tree, whose webhook has a blocked ordering key. */
  async function createBlockedTree(): Promise<{ ids: Tree & BlockedKey; uids: Tree }> {
    const { ids, uids } = await createTree();
    const uid = uniqueUid();
    const blocked = await blockKey(api, ids.appId, refusing.url, { uid });
    return { ids: { ...ids, ...blocked }, uids: { ...uids, webhookId: uid } };
  }

  /** Creates a key that may be used for one app only. */
  async function keyOf(appId: string): Promise<ApiClient> {
    const answer = await api.post('/api/v1/api-keys', { name: 'One app', appId });
    const { key } = dataOf<{ key: string }>(answer, 201);
    return createApiClient(posthorn.baseUrl, key, { companyid: posthorn.companyId });
  }

  describe('in the place of an id', () => {
    /** Names the places of a route that take an id of a project, an app or a webhook. */
    function placesIn(route: Route): string[] {
      const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => `path ${name}`);
      const of = (where: string, shape: object = {}) =>
        Object.keys(shape).map((name) => `${where} ${name}`);
      const all = [...inPath, ...of('query', route.query.shape), ...of('body', route.body?.shape)];
      const path = pathsOf(route)[0].replaceAll(/:(\w+)/g, '{$1}');
      return all
        .filter((place) => KINDS.some((name) => place.endsWith(` ${name}`)))
        .map((place) => `${route.method.toUpperCase()} ${path} ${place}`);
    }

    const nameOf = ({ operation: { method, path }, where, name }: Place): string =>
      `${method} ${path} ${where} ${name}`;

    it('are taken by every place of the route table, and unknown ones get what unknown ids get', async () => {
      const operations = await readOperations(posthorn.baseUrl);
      const isKind = (name: string): name is keyof Tree => KINDS.some((each) => each === name);
      const places = placesOf(operations).filter(({ name }) => isKind(name));
      const inTable = routeTable().flatMap(placesIn);
      expect([...new Set(places.map(nameOf))].sort()).toEqual([...new Set(inTable)].sort());
      expect(places.length).toBeGreaterThan(40);
      dataOf(await api.put('/api/v1/portal-settings', { origins: ['https://app.example.com'] }));

      for (const place of places) {
        const { name } = place;
        if (!isKind(name)) continue;
        const isSkip = place.operation.path.endsWith('/skip');
        const { ids, uids } = await (isSkip ? createBlockedTree() : createTree());
        const since = new Date(Date.now() - 3_600_000).toISOString();
        const until = new Date(Date.now() + 3_600_000).toISOString();
        const eventTypeName = 'order.paid';
        const known = { ...ids, since, until, url: receiver.url, eventTypeName };
        const eventTypes = `/api/v1/projects/${ids.projectId}/event-types`;
        // The example of a test message has an event type.
        if (/\{eventTypeName\}|\/test$/.test(place.operation.path)) {
          dataOf(await api.post(eventTypes, { name: eventTypeName }), 201);
        }
        const send = (value: string): Promise<ApiAnswer> => {
          const { method, path, body } = requestWith(place, value, known);
          return api.request(method, path, body);
        };
        const unknown = [unknownLike(ids[name]), `uid:${uniqueUid()}`] as const;
        const [byId, byUid] = [await send(unknown[0]), await send(unknown[1])];
        expect([nameOf(place), comparable(byUid, unknown[1])]).toEqual([
          ...[nameOf(place), comparable(byId, unknown[0])],
        ]);
        const found = await send(`uid:${uids[name]}`);
        expect([nameOf(place), found.status < 300 || found.body]).toEqual([nameOf(place), true]);
        expect(JSON.stringify(found.body)).not.toContain(`uid:${uids[name]}`);
      }
    }, 240_000);

    it('are shown, and read what the id reads', async () => {
      const { ids, uids } = await createTree();
      const paths = { projectId: '/api/v1/projects', appId: '/apps', webhookId: '/webhooks' };
      for (const name of KINDS) {
        const byId = dataOf<Shown>(await api.get(`${paths[name]}/${ids[name]}`));
        expect(byId).toMatchObject({ id: ids[name], uid: uids[name], metadata: {} });
        expect(dataOf(await api.get(`${paths[name]}/uid:${uids[name]}`))).toEqual(byId);
      }
    });

    it('are taken in lists of ids, and by searches as a whole', async () => {
      const { ids, uids } = await createTree();
      const counted = await api.get(`/api/v1/app-counts?ids=uid:${uids.appId},app_1,uid:none`);
      expect(dataOf(counted)).toEqual([expect.objectContaining({ appId: ids.appId, webhooks: 1 })]);
      const listed = `ids=wh_1,uid:${uids.webhookId}`;
      for (const query of [listed, `text=${uids.webhookId}`]) {
        const found = dataOf(await api.get(`/api/v1/find-webhooks?${query}`));
        expect(found).toEqual([
          expect.objectContaining({ id: ids.webhookId, uid: uids.webhookId }),
        ]);
      }
      const apps = dataOf(await api.get(`/api/v1/find-apps?text=${uids.appId}`));
      expect(apps).toEqual([expect.objectContaining({ id: ids.appId, uid: uids.appId })]);
      const part = uids.appId.slice(0, -1);
      expect(dataOf(await api.get(`/api/v1/find-apps?text=${part}`))).toEqual([]);
    });

    it('need their mark, also when they look like ids', async () => {
      const { ids } = await createTree();
      const { id: projectId } = await make.project();
      const { id } = await make.app({ projectId, uid: ids.appId });
      expect(dataOf<Shown>(await api.get(`/apps/${ids.appId}`)).id).toBe(ids.appId);
      expect(dataOf<Shown>(await api.get(`/apps/uid:${ids.appId}`)).id).toBe(id);
    });

    it('that nothing can have get 404', async () => {
      for (const uid of ['', 'a b', 'a/b', 'ä', 'x'.repeat(129), 'uid:x']) {
        expectNotFound(await api.get(`/apps/${encodeURIComponent(`uid:${uid}`)}`));
      }
    });

    it('of other apps are unknown to a key of one app, and its own are taken', async () => {
      const [own, other] = [await createTree(), await createTree()];
      const client = await keyOf(`uid:${own.uids.appId}`);
      expect(dataOf<Shown>(await client.get(`/apps/uid:${own.uids.appId}`)).id).toBe(own.ids.appId);
      expectNotFound(await client.get(`/apps/uid:${other.uids.appId}`));
      expectNotFound(await client.get(`/webhooks/uid:${other.uids.webhookId}`));
      const payload = {};
      const appId = `uid:${own.uids.appId}`;
      dataOf(await client.post('/webhook-messages', { appId, payload }), 202);
    });

    it('of webhooks are taken from a visitor of the portal, who cannot change them [security]', async () => {
      const [own, other] = [await createTree(), await createTree()];
      const link = await makePortalLink(api, own.ids.appId, { capabilities: ['manage'] });
      const cookie = await openLink(posthorn.baseUrl, link);
      const visitor = createSessionClient(posthorn.baseUrl, cookie, 'portal');
      const path = `/webhooks/uid:${own.uids.webhookId}`;
      dataOf(await visitor.put(path, { name: 'By a visitor' }));
      expectNotFound(await visitor.get(`/webhooks/uid:${other.uids.webhookId}`));
      const webhook = { url: receiver.url, appId: own.ids.appId };
      for (const uid of [other.uids.webhookId, uniqueUid()]) {
        for (const answer of [
          await visitor.post('/webhooks', { ...webhook, uid }),
          await visitor.put(path, { uid }),
          await visitor.put(`/webhooks/uid:${uid}?upsert=true`, webhook),
        ]) {
          expectFailure(answer, 403, 'insufficient_scope');
        }
      }
    });

    it('are replaced by the id in the audit log', async () => {
      const { ids, uids } = await createTree();
      dataOf(await api.put(`/apps/uid:${uids.appId}`, { name: 'Renamed' }));
      const [event] = await readAuditEvents(api, { targetId: ids.appId, action: 'app.updated' });
      expect(event?.changes).toEqual([expect.objectContaining({ after: 'Renamed' })]);
    });
  });

  describe('belong to one', () => {
    it('are refused for another one of the kind, at creation and in updates', async () => {
      const { ids, uids } = await createTree();
      const { projectId, appId } = ids;
      const taken = (answer: ApiAnswer): void => {
        expectFailure(answer, 409, 'uid_taken');
      };
      const url = receiver.url;
      taken(await api.post('/projects', { name: 'P', uid: uids.projectId }));
      taken(await api.post('/apps', { name: 'A', projectId, uid: uids.appId }));
      taken(await api.post('/webhooks', { url, appId, uid: uids.webhookId }));
      const others = (await createTree()).ids;
      taken(await api.put(`/api/v1/projects/${others.projectId}`, { uid: uids.projectId }));
      taken(await api.put(`/apps/${others.appId}`, { uid: uids.appId }));
      taken(await api.put(`/webhooks/${others.webhookId}`, { uid: uids.webhookId }));
    });

    it('may be the same for a project, an app and a webhook', async () => {
      const uid = uniqueUid();
      const { id: projectId } = await make.project({ uid });
      const { id: appId } = await make.app({ projectId: `uid:${uid}`, uid });
      const { id } = await make.webhook({ appId: `uid:${uid}`, url: receiver.url, uid });
      expect([projectId, appId, id]).toEqual([anId('proj'), anId('app'), anId('wh')]);
    });

    it('are moved to another app at once', async () => {
      const [one, two] = [await createTree(), await createTree()];
      const uid = one.uids.appId;
      const send = () => api.post('/webhook-messages', { appId: `uid:${uid}`, payload: {} });
      const targetOf = (answer: ApiAnswer): unknown =>
        dataOf<{ deliveries: { webhookId: string }[] }>(answer, 202).deliveries[0]?.webhookId;
      expect(targetOf(await send())).toBe(one.ids.webhookId);
      dataOf(await api.put(`/apps/${one.ids.appId}`, { uid: null }));
      expectNotFound(await send());
      dataOf(await api.put(`/apps/${two.ids.appId}`, { uid }));
      expect(targetOf(await send())).toBe(two.ids.webhookId);
    });

    it('are free when the deletion of the app, or of what it is in, has responded', async () => {
      const { ids, uids } = await createTree();
      expectDeleted(await api.delete(`/apps/uid:${uids.appId}`));
      const { id } = await make.app({ projectId: ids.projectId, uid: uids.appId });
      await make.webhook({ appId: id, url: receiver.url, uid: uids.webhookId });
      expectDeleted(await api.delete(`/api/v1/projects/uid:${uids.projectId}`));
      const projectId = (await make.project({ uid: uids.projectId })).id;
      const appId = (await make.app({ projectId, uid: uids.appId })).id;
      await make.webhook({ appId, url: receiver.url, uid: uids.webhookId });
      expectDeleted(await api.delete(`/webhooks/uid:${uids.webhookId}`));
      await make.webhook({ appId, url: receiver.url, uid: uids.webhookId });
    });
  });

  describe('with upsert=true', () => {
    const upsert = (path: string, body: object, client = api): Promise<ApiAnswer> =>
      client.put(`${path}?upsert=true`, body);

    it('create what does not exist, then update it', async () => {
      const [projectUid, appUid, webhookUid] = [uniqueUid(), uniqueUid(), uniqueUid()];
      const projectId = `uid:${projectUid}`;
      const appId = `uid:${appUid}`;
      const bodies: [string, object, string][] = [
        [`/api/v1/projects/${projectId}`, { environment: 'production' }, 'project'],
        [`/apps/${appId}`, { projectId, environment: 'production' }, 'app'],
        [`/webhooks/uid:${webhookUid}`, { appId, url: receiver.url }, 'webhook'],
      ];
      for (const [path, fields, kind] of bodies) {
        expectNotFound(await api.put(path, { name: 'First' }));
        const first = await upsert(path, { ...fields, name: 'First', metadata: { a: 'b' } });
        const created = dataOf<Shown>(first, 201);
        expect(created).toMatchObject({ name: 'First', metadata: { a: 'b' } });
        const second = dataOf<Shown>(await upsert(path, { ...fields, name: 'Second' }));
        expect(second).toMatchObject({ id: created.id, uid: created.uid, metadata: { a: 'b' } });
        expect(second.name).toBe('Second');
        const third = dataOf<Shown>(
          await upsert(path, { ...fields, name: 'Second', metadata: null }),
        );
        expect(third.metadata).toEqual({});
        const events = await readAuditEvents(api, { targetId: created.id });
        expect(events.map(({ action }) => action)).toEqual([
          ...[`${kind}.updated`, `${kind}.updated`, `${kind}.created`],
        ]);
        expect(events.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
      }
    });

    it.each(['project', 'app', 'webhook'] as const)(
      'a hundred at once make one %s and no error',
      async (kind) => {
        const { ids } = await createTree();
        const uid = uniqueUid();
        const { projectId, appId } = ids;
        const at = {
          project: [`/api/v1/projects/uid:${uid}`, { name: 'One' }],
          app: [`/apps/uid:${uid}`, { name: 'One', projectId }],
          webhook: [`/webhooks/uid:${uid}`, { name: 'One', appId, url: receiver.url }],
        } as const;
        const [path, body] = at[kind];
        // A busy machine answers some with 503: they are sent again, as the response asks.
        let sentAgain = 0;
        const send = () =>
          eventually(
            'an answer',
            async () => {
              const answer = await upsert(path, body);
              if (answer.status !== 503) return answer;
              sentAgain += 1;
              return null;
            },
            60_000,
          );
        const answers = await Promise.all(Array.from({ length: 100 }, send));
        const failed = answers.filter(({ status }) => status >= 300).map((each) => each.body);
        expect(failed).toEqual([]);
        const made = new Set(answers.map((answer) => (answer.body.data as Shown).id));
        expect(made.size).toBe(1);
        const [targetId = ''] = made;
        const created = answers.filter(({ status }) => status === 201);
        const events = await readAuditEvents(api, { targetId, action: `${kind}.created` });
        const done = events.filter(({ outcome }) => outcome === 'done');
        expect(Math.max(created.length, done.length)).toBeLessThanOrEqual(1);
        // The response to the creation may be one of those that were not sent in time.
        expect([created.length, done.length]).toEqual(
          sentAgain === 0 ? [1, 1] : [expect.any(Number), expect.any(Number)],
        );
      },
      120_000,
    );

    it('are refused with a plain id, with a body that creates nothing, and with another uid in it', async () => {
      const { ids } = await createTree();
      const { projectId } = ids;
      expectInvalid(await upsert(`/apps/${ids.appId}`, { name: 'A' }), 'upsert');
      expectInvalid(await upsert('/apps/uid:a%20b', { name: 'A' }), 'upsert');
      expectInvalid(await upsert(`/apps/uid:${uniqueUid()}`, {}), 'name', 'projectId');
      const uid = uniqueUid();
      expectInvalid(await upsert(`/apps/uid:${uid}`, { name: 'A', projectId, uid: 'b' }), 'uid');
      expectNotFound(await upsert(`/apps/uid:${uid}`, { name: 'A', projectId: 'proj_1' }));
      expectInvalid(await api.put(`/apps/${ids.appId}`, { projectId }), 'projectId');
      dataOf(await upsert(`/apps/uid:${uid}`, { name: 'A', projectId, uid }), 201);
    });

    it('are 409 for what has another owner or environment', async () => {
      const [own, other] = [await createTree(), await createTree()];
      const name = 'Taken';
      const url = receiver.url;
      const { projectId, appId } = other.ids;
      const taken: [string, object][] = [
        [`/apps/uid:${own.uids.appId}`, { name, projectId }],
        [
          `/apps/uid:${own.uids.appId}`,
          { name, projectId: own.ids.projectId, environment: 'production' },
        ],
        [`/api/v1/projects/uid:${own.uids.projectId}`, { name, environment: 'production' }],
        [`/webhooks/uid:${own.uids.webhookId}`, { name, url, appId }],
        [`/webhooks/uid:${own.uids.webhookId}`, { name, url, projectId, environmentId: 'live' }],
      ];
      for (const [path, body] of taken) expectFailure(await upsert(path, body), 409, 'uid_taken');
    });

    it('set the secret of a webhook when they create it, and no other one later', async () => {
      const { ids } = await createTree();
      const path = `/webhooks/uid:${uniqueUid()}`;
      const secretOf = (byte: number) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
      const body = { url: receiver.url, appId: ids.appId, secret: secretOf(1) };
      expect(dataOf(await upsert(path, body), 201)).toMatchObject({ secret: secretOf(1) });
      expect(dataOf(await upsert(path, body))).toMatchObject({ secret: secretOf(1) });
      expectInvalid(await upsert(path, { ...body, secret: secretOf(2) }), 'secret');
    });

    it('upserts with a key of one app create webhooks in that app, and nothing else', async () => {
      const [own, other] = [await createTree(), await createTree()];
      const client = await keyOf(own.ids.appId);
      const url = receiver.url;
      const { appId } = own.ids;
      const path = `/webhooks/uid:${uniqueUid()}`;
      dataOf(await upsert(path, { url, appId }, client), 201);
      dataOf(await upsert(path, { url, appId: `uid:${own.uids.appId}` }, client));
      const foreign = `/webhooks/uid:${other.uids.webhookId}`;
      expectNotFound(await upsert(foreign, { url, appId }, client));
      expectNotFound(
        await upsert(`/webhooks/uid:${uniqueUid()}`, { url, appId: other.ids.appId }, client),
      );
    });

    it('of apps and projects are 403 for a key of one app, whatever has the uid, and so is the uid of its app [security]', async () => {
      const [own, other] = [await createTree(), await createTree()];
      const client = await keyOf(own.ids.appId);
      const app = { name: 'A', projectId: own.ids.projectId };
      for (const answer of [
        await upsert(`/apps/uid:${uniqueUid()}`, app, client),
        await upsert(`/apps/uid:${other.uids.appId}`, app, client),
        await upsert(`/api/v1/projects/uid:${uniqueUid()}`, { name: 'P' }, client),
        await upsert(`/api/v1/projects/uid:${other.uids.projectId}`, { name: 'P' }, client),
        await client.put(`/apps/${own.ids.appId}`, { uid: uniqueUid() }),
        await client.put(`/apps/${own.ids.appId}`, { uid: other.uids.appId }),
      ]) {
        expectFailure(answer, 403, 'insufficient_scope');
      }
      dataOf(await client.put(`/apps/${own.ids.appId}`, { name: 'Renamed' }));
    });

    it('take null for the name of a webhook each time', async () => {
      const { ids } = await createTree();
      const path = `/webhooks/uid:${uniqueUid()}`;
      const body = { url: receiver.url, appId: ids.appId, name: null };
      dataOf(await upsert(path, body), 201);
      dataOf(await upsert(path, body));
    });
  });

  describe('and metadata', () => {
    it('is replaced as a whole, and taken away by null', async () => {
      const { ids } = await createTree();
      for (const path of [
        `/api/v1/projects/${ids.projectId}`,
        `/apps/${ids.appId}`,
        `/webhooks/${ids.webhookId}`,
      ]) {
        const set = async (metadata: unknown): Promise<unknown> =>
          dataOf<Shown>(await api.put(path, { metadata })).metadata;
        const odd = { plan: 'gold', '$set.a': '', 'a.b': 'ü', '1': 'x'.repeat(500) };
        expect(await set(odd)).toEqual(odd);
        expect(dataOf<Shown>(await api.get(path)).metadata).toEqual(odd);
        expect(await set({ other: '1' })).toEqual({ other: '1' });
        expect(await set(null)).toEqual({});
        expect(dataOf<Shown>(await api.get(path)).metadata).toEqual({});
      }
    });
  });

  describe('and null', () => {
    it('means not given at creation', async () => {
      const nothing = { uid: null, metadata: null, description: null, environment: null };
      const project = await make.project({ name: 'P', ...nothing });
      const app = { name: 'A', projectId: project.id, storeResponses: null, storePayloads: null };
      const made = await make.app({ ...app, ...nothing });
      expect(made).toMatchObject({
        uid: null,
        metadata: {},
        description: '',
        environment: 'development',
      });
      expect(Object.keys(made)).not.toContain('storeResponses');
      const owner = { appId: made.id, projectId: null, environmentId: null };
      const names = [
        ...['name', 'customHeaders', 'tls', 'eventTypes', 'disabled', 'rateLimitPerSecond'],
        ...['timeoutSeconds', 'uid', 'metadata', 'authMethod', 'hmacHeader', 'hmacSecret'],
        ...['signatureAlgorithm', 'apiKey', 'apiKeyHeader', 'basicAuthUsername', 'oauth2Scope'],
      ];
      const absent = Object.fromEntries(names.map((name) => [name, null]));
      const webhook = await make.webhook({ url: receiver.url, ...owner, ...absent });
      const { host } = new URL(receiver.url);
      expect(webhook).toMatchObject({ name: host, customHeaders: [], disabled: false });
      expect(webhook.authMethod).toMatchObject({ hmacHeader: 'X-Service-Signature' });
      const message = { appId: made.id, webhookId: null, eventType: null, payload: {} };
      dataOf(await api.post('/webhook-messages', message), 202);
      dataOf(await api.post('/api/v1/api-keys', { name: 'K', scopes: null, appId: null }), 201);
    });

    it('takes a field away in an update, back to its default', async () => {
      const uid = uniqueUid();
      const { id: projectId } = await make.project({ description: 'D', uid });
      const project = { description: null, uid: null };
      const shown = dataOf<Shown>(await api.put(`/api/v1/projects/${projectId}`, project));
      expect(shown).toMatchObject({ uid: null });
      expect(Object.keys(shown)).not.toContain('description');
      const storage = { storeResponses: false, storePayloads: 'until-delivered' };
      const { id: appId } = await make.app({ projectId, description: 'D', ...storage });
      const nothing = { description: null, storeResponses: null, storePayloads: null };
      const app = dataOf<Shown>(await api.put(`/apps/${appId}`, nothing));
      expect(app).toMatchObject({ description: '' });
      expect(Object.keys(app)).not.toContain('storePayloads');
      expect(dataOf(await api.get(`/apps/${appId}`))).toEqual(app);
      const fields = { hmacHeader: 'X-Own', hmacSecret: 'own', eventTypes: ['a'], disabled: true };
      const customHeaders = [{ key: 'X-A', value: 'b' }];
      const url = receiver.url;
      const { id, secret } = await make.webhook({ appId, url, customHeaders, ...fields });
      const without = { hmacHeader: null, hmacSecret: null, eventTypes: null, disabled: null };
      const unused = { apiKey: null, oauth2Scope: null };
      const update = { customHeaders: null, ...without, ...unused };
      expect(dataOf(await api.put(`/webhooks/${id}`, update))).toMatchObject({
        customHeaders: [],
        eventTypes: [],
        disabled: false,
      });
      const { authMethod } = dataOf<{ authMethod: object }>(await api.get(`/webhooks/${id}`));
      const hmac = { method: 'hmac', hmacHeader: 'X-Service-Signature', hmacSecret: secret };
      expect(authMethod).toEqual(hmac);
    });

    it('is refused where a value is required', async () => {
      const { ids } = await createTree();
      expectInvalid(await api.put(`/api/v1/projects/${ids.projectId}`, { name: null }), 'name');
      expectInvalid(await api.put(`/apps/${ids.appId}`, { name: null }), 'name');
      const path = `/webhooks/${ids.webhookId}`;
      expectInvalid(await api.put(path, { name: null, url: null }), 'name', 'url');
      const basic = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
      dataOf(await api.put(path, basic));
      expectInvalid(await api.put(path, { basicAuthPassword: null }), 'basicAuthPassword');
      dataOf(await api.put(path, { authMethod: null }));
      const { authMethod } = dataOf<{ authMethod: object }>(await api.get(path));
      expect(authMethod).toMatchObject({ method: 'hmac' });
    });
  });
});
