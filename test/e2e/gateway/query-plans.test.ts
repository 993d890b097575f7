import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { wantsEvent } from '@posthorn/domain/webhook.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { connectMongo, type MongoConnection } from '@posthorn/platform/mongo/connect.ts';
import { DAY_KINDS, dayDatabaseName } from '@posthorn/platform/mongo/days/days.ts';
import { systemIds } from '@posthorn/platform/service/clock-and-ids.ts';
import { type ApiClient, createApiClient } from '../../support/api/api-client.ts';
import { withCompanyId } from '../../support/process/companies.ts';
import { insertFillerDocuments } from '../../support/isolation/filler-documents.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { eventually } from '../../support/time/eventually.ts';
import { blockKey } from '../../support/api/blocked-key.ts';
import { dataOf } from '../../support/api/expect-answers.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing } from '../../support/receivers/receiver.ts';
import { collectionOf, distinct, type Profiled } from '../../support/stores/profiled-queries.ts';
import { bodiesOf, readOperations, requestWith } from '../../support/api/request-places.ts';
import { createResources } from '../../support/api/resources.ts';
import { createPersonBrowser } from '../../support/people/person-browser.ts';
import {
  CLIENT_ID,
  type ScriptedIssuer,
  startScriptedIssuer,
} from '../../support/people/scripted-issuer.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { makePortalLink } from '../../support/api/session-client.ts';
import { metricOf } from '../../support/process/traffic.ts';

type Database = ReturnType<MongoConnection['db']['client']['db']>;

interface Id {
  id: string;
}

interface ByEventType {
  eventTypes?: { $in?: readonly unknown[] };
}

type Kind = 'project' | 'app' | 'webhook' | 'message' | 'delivery' | 'key' | 'link' | 'person';
type Known = Record<`${Kind}Id`, string>;

const CROWD = 6_000;
const WIDE_CROWD = 100_000;
const PROFILE_BYTES = 256 * 2 ** 20;
/** Holds one document for each gateway process: an index would be larger than the collection. */
const SMALL_COLLECTIONS = new Set(['publishers']);
/** Deletes come last, and owners after what they own. */
const DELETES = ['people', 'api-keys', 'event-types', 'webhooks', 'apps', 'projects'];

let posthorn: Posthorn;
let issuer: ScriptedIssuer;
/** The address of a gateway at which people sign in. */
let people: string;
let api: ApiClient;
const receiver = useReceiver();
let mongo: MongoConnection;
/** That of Posthorn, and those of its days. */
let databases: Database[] = [];
let known: Known;

beforeAll(async () => {
  // The endpoint always fails: what its open circuit defers has to come back soon.
  issuer = await startScriptedIssuer();
  posthorn = await startPosthorn({
    RETRY_DELAYS: '50ms',
    CIRCUIT_RESET_MS: '100',
    QUOTA_KEYS_PER_COMPANY: '1000000',
  });
  api = withCompanyId(posthorn);
  people = await startForPeople();
  receiver.answerWith(failing(99));
  mongo = await connectMongo(posthorn.env.MONGODB_URL, 'posthorn-test');
  known = await makeKnown();
  const { companyId } = posthorn;
  await insertFillerDocuments(mongo.db, { companyId, ...known }, CROWD);
  const { client, databaseName } = mongo.db;
  const days = DAY_KINDS.map((kind) => dayDatabaseName(databaseName, kind));
  databases = [databaseName, ...days].map((name) => client.db(name));
  for (const each of databases)
    await each.createCollection('system.profile', { capped: true, size: PROFILE_BYTES });
  await profile(2);
}, 480_000);

afterAll(async () => {
  await profile(0);
  await posthorn.stop();
  await issuer.close();
  await mongo.close();
});

async function profile(level: 0 | 2): Promise<void> {
  for (const each of databases) await each.command({ profile: level });
}

async function makeKnown(): Promise<Known> {
  const make = createResources(api);
  const { id: projectId } = await make.project();
  const { id: appId } = await make.app({ projectId });
  const { id: webhookId } = await make.webhook({ url: receiver.url, appId });
  const { id: messageId, deliveries } = await make.message({ webhookId });
  const deliveryId = String(deliveries[0]?.id);
  await make.deliveryOnce('exhausted', deliveryId);
  const { id: linkId } = await makePortalLink(api, appId, { capabilities: ['view'] });
  const key = await api.post('/api/v1/api-keys', { name: 'Key' });
  const keyId = dataOf<Id>(key, 201).id;
  const personId = await signInInvited();
  return { projectId, appId, webhookId, messageId, deliveryId, keyId, linkId, personId };
}

async function startForPeople(): Promise<string> {
  const [port = 0] = await freePorts(1);
  const baseUrl = `http://127.0.0.1:${port}`;
  await posthorn.start('gateway', {
    PORT: String(port),
    PUBLIC_URL: baseUrl,
    OIDC_ISSUER: issuer.url,
    OIDC_CLIENT_ID: CLIENT_ID,
  });
  return baseUrl;
}

async function invite(): Promise<{ id: string; token: string }> {
  const keyed = createApiClient(people, posthorn.apiKey);
  const made = await keyed.post('/api/v1/invitations', { role: 'viewer' });
  const { id, url } = dataOf<Id & { url: string }>(made, 201);
  return { id, token: url.split('#')[1] ?? '' };
}

/** Returns the person who has signed in, by an invitation and with a group. */
async function signInInvited(): Promise<string> {
  const groups = [{ group: 'plans', role: 'viewer' }];
  const keyed = createApiClient(people, posthorn.apiKey);
  dataOf(await keyed.put('/api/v1/people-settings', { groups }));
  const { token: invitation } = await invite();
  const browser = createPersonBrowser(people, issuer);
  const login = { sub: 'guest', claims: { groups: ['plans'], sid: 'sid-1' } };
  expect(await browser.signIn(login, { invitation })).toBe('/dashboard/');
  expect(await browser.signIn(login)).toBe('/dashboard/');
  const session = dataOf<{ person: Id }>(await browser.api.get('/dashboard/api/session'));
  return session.person.id;
}

/** The issuer ends sessions, which are found by its own ids. */
async function logOutByIssuer(): Promise<void> {
  for (const claims of [{ sid: 'sid-1' }, { sub: 'guest' }]) {
    const token = await issuer.logoutToken(claims);
    const body = new URLSearchParams({ logout_token: token });
    const path = '/dashboard/api/oidc/back-channel-logout';
    const answer = await fetch(people + path, { method: 'POST', body });
    expect(answer.status).toBe(200);
  }
}

/** Nothing of an erased message can be resent. */
const rankOf = ({ method, path }: { method: string; path: string }): number => {
  if (method === 'DELETE') return DELETES.findIndex((name) => path.includes(name));
  return path.endsWith('/erase-payload') ? -1 : -2;
};

/**
 * The endpoint answers meanwhile: its open circuit lets one attempt through at a time, and a resend may
 * have to wait for the turns of all others while each of them fails.
 */
async function untilResent(): Promise<void> {
  const resends = mongo.db.collection('resends');
  const running = (): Promise<number> => resends.countDocuments({ status: 'running' });
  receiver.answerWith(failing(0));
  await eventually('the end of the resends', async () => (await running()) === 0, 60_000);
  receiver.answerWith(failing(99));
}

/** Makes a delivery that is pending until its webhook is resumed. */
async function makePending(): Promise<{ deliveryId: string }> {
  dataOf(await api.post(`/api/v1/webhooks/${known.webhookId}/hold`, {}));
  const { deliveries } = await createResources(api).message({ webhookId: known.webhookId });
  return { deliveryId: String(deliveries[0]?.id) };
}

/** With an earlier schema. */
async function makeEventType(): Promise<string> {
  const path = `/api/v1/projects/${known.projectId}/event-types`;
  const name = 'plans.made';
  dataOf(await api.post(path, { name }), 201);
  dataOf(await api.put(`${path}/${name}`, { schema: {} }));
  dataOf(await api.get(`${path}/${name}?version=1`));
  dataOf(await api.get(`${path}?group=none&archived=false`));
  return name;
}

/** Returns the ids of what an operation needs for itself. */
async function ownFor({ path }: { path: string }): Promise<object> {
  if (path.endsWith('/cancel')) return makePending();
  return path.endsWith('/skip') ? blockKey(api, known.appId, receiver.url) : {};
}

async function resume(): Promise<void> {
  dataOf(await api.post(`/api/v1/webhooks/${known.webhookId}/resume`, {}), 202);
}

/** Calls each operation of the API once with each of its example bodies; each call must succeed. */
async function callEveryOperation(): Promise<void> {
  const [since, inAnHour] = [-1, 1].map((hours) =>
    new Date(Date.now() + hours * 3_600_000).toISOString(),
  );
  const resend = await api.post(`/api/v1/webhooks/${known.webhookId}/resend-failed`, {
    since,
  });
  const cancelled = await api.post('/api/v1/deliveries/cancel', { eventType: 'plans' });
  const ids = {
    ...known,
    id: known.messageId,
    cancellationId: dataOf<Id>(cancelled, 202).id,
    resendId: dataOf<Id>(resend, 202).id,
    invitationId: (await invite()).id,
    eventTypeName: await makeEventType(),
    since,
    until: inAnHour,
    disabled: false,
  };
  // The logo of the example of a portal link is there.
  const settings = { origins: ['https://app.example.com'] };
  dataOf(await api.put('/api/v1/portal-settings', settings));
  const operations = (await readOperations(posthorn.baseUrl)).sort((a, b) => rankOf(a) - rankOf(b));
  for (const operation of operations) {
    const needed = operation.parameters.find(
      ({ in: where, required }) => where === 'query' && required,
    );
    const name = needed?.name ?? '';
    const where = needed ? ('query' as const) : ('path' as const);
    for (const body of [...bodiesOf(operation), null].slice(0, bodiesOf(operation).length || 1)) {
      const url = body && 'url' in body ? { url: receiver.url } : {};
      const value = (ids as Record<string, unknown>)[name];
      // A delivery cannot be resent while its resend runs.
      if (operation.path.includes('/resend')) await untilResent();
      const own = await ownFor(operation);
      // All messages that fill the collection would take minutes.
      const later = operation.path.endsWith('/replay-missing') ? { since: inAnHour } : {};
      const known = { ...ids, ...url, ...own, ...later };
      const request = requestWith({ operation, where, name, body }, value, known);
      const answer = await api.request(request.method, request.path, request.body);
      if (operation.path.endsWith('/cancel')) await resume();
      expect([request.method, request.path, answer.status < 300 || answer.body]).toEqual([
        ...[request.method, request.path, true],
      ]);
    }
  }
}

/** Calls the list of messages, the only one with many filters, with every combination of them. */
async function filterMessages(): Promise<void> {
  const { appId, webhookId, messageId } = known;
  const time = new Date().toISOString();
  const options = [
    ...[`appId=${appId}`, `webhookId=${webhookId}`, `to=${time}`],
    ...[`from=${new Date(0).toISOString()}`, `cursor=${messageId}`, 'eventType=order.paid'],
  ];
  const statuses = [
    '',
    ...['pending', 'delivered', 'exhausted', 'cancelled'].map((status) => `status=${status}`),
  ];
  const found = ['tag=filler', 'externalId=filler', 'tag=filler&externalId=filler', 'tag=none'];
  for (const status of statuses) {
    for (const option of found.flatMap((by) => [by, ...options.map((other) => `${by}&${other}`)])) {
      const query = [option, status, 'limit=2'].filter((each) => each !== '').join('&');
      dataOf(await api.get(`/api/v1/webhook-messages?${query}`));
    }
    for (let chosen = 0; chosen < 2 ** options.length; chosen += 1) {
      const filters = options.filter((_, index) => (chosen >> index) & 1);
      const query = [...filters, status, 'limit=2'].filter((each) => each !== '').join('&');
      dataOf(await api.get(`/api/v1/webhook-messages?${query}`));
    }
  }
}

/** Calls the list of deliveries with every combination of its filters. */
async function filterDeliveries(): Promise<void> {
  const { appId, webhookId, messageId, deliveryId } = known;
  const times = [`since=${new Date(0).toISOString()}`, `until=${new Date().toISOString()}`];
  const options = [`appId=${appId}`, `webhookId=${webhookId}`, 'eventType=order.paid', ...times];
  const cursor = `cursor=${messageId}.${deliveryId}`;
  const statuses = ['', 'status=pending', 'status=delivered', 'status=exhausted'];
  const cancelled = [
    'status=cancelled',
    'reason=webhook_deleted',
    'status=pending,exhausted',
    'waiting=hold',
  ];
  for (const status of [...statuses, ...cancelled]) {
    for (let chosen = 0; chosen < 2 ** options.length; chosen += 1) {
      const filters = options.filter((_, index) => (chosen >> index) & 1);
      const query = [...filters, status, 'limit=2'].filter((each) => each !== '').join('&');
      dataOf(await api.get(`/api/v1/deliveries?${query}`));
      if (filters.length > 0) await planDeliveries(status, filters);
      dataOf(await api.get(`/api/v1/deliveries?${query}&${cursor}`));
    }
  }
}

/** Plans what can be done with the deliveries of the filters. */
async function planDeliveries(status: string, filters: readonly string[]): Promise<void> {
  const what = /pending$|waiting/.test(status) ? 'cancel' : 'resend';
  if (/delivered|pending,/.test(status)) return;
  const query = [...filters, status].filter((each) => each !== '').join('&');
  dataOf(await api.get(`/api/v1/deliveries/${what}/estimate?${query}`));
}

/** Cancels and resends by each field that leads to another index, and waits for the end. */
async function actByFilters(): Promise<void> {
  const { appId, webhookId } = known;
  const since = new Date(0).toISOString();
  for (const filter of [{ appId }, { webhookId }, { eventType: 'order.paid' }, { since }]) {
    dataOf(await api.post('/api/v1/deliveries/cancel', { ...filter, until: since }), 202);
    dataOf(await api.post('/api/v1/deliveries/cancel', { ...filter, eventType: 'none' }), 202);
    await untilResent();
    dataOf(await api.post('/api/v1/deliveries/resend', { ...filter, eventType: 'none' }), 202);
  }
  await untilResent();
  dataOf(await api.get(`/api/v1/cancellations?appId=${appId}`));
  dataOf(await api.get(`/api/v1/cancellations?webhookId=${webhookId}`));
  const cancellations = mongo.db.collection('filterCancellations');
  const running = (): Promise<number> => cancellations.countDocuments({ status: 'running' });
  await eventually('the end of the cancellations', async () => (await running()) === 0, 120_000);
}

const WIDE_GROUPS = 10;
const TYPES_OF_A_GROUP = 100;

/** The event types of the n-th webhook of the wide app: all, a group, or one of 1,000 event types. */
function wideEventTypes(n: number): string[] {
  if (n % 10_000 === 1) return [];
  if (n % 1_000 === 0) return [`wide.${(n / 1_000) % WIDE_GROUPS}.*`];
  return [`wide.${n % WIDE_GROUPS}.${Math.floor(n / WIDE_GROUPS) % TYPES_OF_A_GROUP}`];
}

/**
 * Sends messages to an app with 100,000 webhooks, and returns how many of them select the event type of each. The profiler
 * would keep little but their insertion.
 */
async function sendToWideApp(): Promise<Map<string, number>> {
  const make = createResources(api);
  const { companyId } = posthorn;
  const { id: projectId } = await make.project();
  const { id: appId } = await make.app({ projectId });
  const eventTypes = ['wide.order.*'];
  await make.webhook({ url: receiver.url, appId, eventTypes });
  // Nothing is sent to them, so nobody needs their sealed fields.
  const others = Array.from({ length: WIDE_CROWD }, (_, n) => ({
    _id: systemIds('wh'),
    companyId,
    projectId,
    appId,
    url: receiver.url,
    disabled: true,
    eventTypes: wideEventTypes(n),
    createdAt: new Date(),
    updatedAt: new Date(),
  }));
  await profile(0);
  await collection(mongo.db, 'webhooks').insertMany(others as never, { ordered: false });
  await profile(2);
  const selecting = new Map<string, number>();
  for (const eventType of ['wide.3.7', 'wide.order.paid', 'wide.order.item.added', 'wide']) {
    const wanted = [{ eventTypes }, ...others].filter((each) => wantsEvent(each, eventType));
    const { deliveries } = await make.message({ appId, eventType });
    expect(deliveries).toHaveLength(wanted.length);
    selecting.set(eventType, wanted.length);
  }
  return selecting;
}

/** Calls the list of audit events with every combination of its filters. */
async function filterAuditEvents(): Promise<void> {
  const times = [`from=${new Date(0).toISOString()}`, `to=${new Date().toISOString()}`];
  const { webhookId, keyId } = known;
  const all = [`targetId=${webhookId}`, `actor=${keyId}`, 'action=webhook.updated', ...times];
  for (let chosen = 0; chosen < 2 ** all.length; chosen += 1) {
    const filters = all.filter((_, index) => (chosen >> index) & 1);
    dataOf(await api.get(`/api/v1/audit-events?${[...filters, 'limit=2'].join('&')}`));
  }
}

describe('The queries of the services', () => {
  let profiled: Profiled[] = [];
  /** By event type. */
  let selecting: Map<string, number>;

  beforeAll(async () => {
    await filterMessages();
    await filterDeliveries();
    await filterAuditEvents();
    await actByFilters();
    await signInInvited();
    await logOutByIssuer();
    const body = { webhookId: known.webhookId, payload: {} };
    const key = { 'idempotency-key': 'plans' };
    for (let n = 0; n < 2; n += 1) dataOf(await api.post('/webhook-messages', body, key), 202);
    await callEveryOperation();
    // A retry service starts with a reconciliation.
    const retry = await posthorn.start('retry');
    await eventually('the end of a reconciliation', async () =>
      metricOf(retry, 'posthorn_reconcile_last_pass_timestamp_seconds'),
    );
    await untilResent();
    const removals = mongo.db.collection('removals');
    await eventually('the end of the removals', async () => !(await removals.countDocuments()));
    selecting = await sendToWideApp();
    await profile(0);
    const services = { appName: /^posthorn-(gateway|dispatcher|retry)/ };
    const found = databases.map((each) =>
      each.collection<Profiled>('system.profile').find(services).toArray(),
    );
    profiled = (await Promise.all(found)).flat();
  }, 480_000);

  it('include some of every service and of every collection that the API reads', () => {
    const seen = new Set(profiled.filter(({ planSummary }) => planSummary).map(collectionOf));
    expect([...seen]).toEqual(
      expect.arrayContaining([
        ...['apiKeys', 'projects', 'apps', 'webhooks', 'messages', 'deliveries', 'resends'],
        ...['signingKeys', 'people', 'peopleSettings', 'links', 'eventTypes', 'eventTypeVersions'],
        'auditEvents',
        'stats',
      ]),
    );
    const services = new Set(profiled.map(({ appName }) => appName));
    expect([...services].sort()).toEqual([
      'posthorn-dispatcher',
      'posthorn-gateway',
      'posthorn-retry',
    ]);
  });

  it('never read a whole collection', () => {
    const scans = profiled.filter(
      (each) =>
        each.planSummary?.includes('COLLSCAN') && !SMALL_COLLECTIONS.has(collectionOf(each)),
    );
    expect(distinct(scans)).toEqual([]);
  });

  it('never examine a large part of a collection, not even through an index', () => {
    const many = profiled.filter(({ docsExamined = 0 }) => docsExamined > CROWD / 4);
    expect(distinct(many)).toEqual([]);
  });

  it('for a message to a wide app read the webhooks that select its event type and no others', () => {
    for (const [eventType, count] of selecting) {
      const found = profiled.filter(({ command: { filter } }) => {
        const { $in: selectors = [] } = (filter as ByEventType | undefined)?.eventTypes ?? {};
        return selectors.includes(eventType);
      });
      const reads = found.map(({ keysExamined, docsExamined, nreturned }) => {
        return { keysExamined, docsExamined, nreturned };
      });
      expect([eventType, ...reads]).toEqual([
        eventType,
        { keysExamined: count, docsExamined: count, nreturned: count },
      ]);
    }
  });

  it('never sort in memory', () => {
    expect(distinct(profiled.filter(({ hasSortStage }) => hasSortStage))).toEqual([]);
  });
});
