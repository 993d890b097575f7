import fc from 'fast-check';
import type { ApiClient } from '../api/api-client.ts';
import { type BlockedKey, blockKey } from '../api/blocked-key.ts';
import { createResources, type Resources } from '../api/resources.ts';
import { makePortalLink } from '../api/session-client.ts';
import { dataOf } from '../api/expect-answers.ts';

export const DISPOSABLE = 100;
/** Four kinds are made side by side. With all 400 requests at once, a machine with little time to spare answers 503. */
const AT_ONCE = 5;

interface Places {
  /** Responds with 200. */
  goodUrl: string;
  /** Responds with 500. */
  badUrl: string;
}

/** The ids of people, whom no request of the API makes. */
interface KnownPeople {
  own: string[];
  foreign: string[];
}

/** Creates resources in every status for the company of `api`, and some of another company. */
export async function createKnownIds(
  api: ApiClient,
  otherApi: ApiClient,
  places: Places,
  people: KnownPeople,
): Promise<KnownIds> {
  const [own, foreign, disposable] = await Promise.all([
    makeIds(api, places),
    makeIds(otherApi, places),
    makeDisposable(api, places),
  ]);
  const [kept = '', ...removed] = people.own;
  const eventTypeName = await makeEventTypes(api, own.projectId[0] ?? '');
  return {
    own: { ...own, personId: [kept] },
    foreign: { ...foreign, personId: people.foreign },
    disposable: { ...disposable, personId: removed, eventTypeName },
    blocked: await blockKey(api, own.appId[0] ?? '', places.badUrl),
  };
}

/** Creates one resource of each kind, with deliveries that are delivered, exhausted and cancelled. */
async function makeIds(api: ApiClient, { goodUrl, badUrl }: Places): Promise<Ids> {
  const make = createResources(api);
  const project = await make.project();
  const app = await make.app({ projectId: project.id });
  const owner = { appId: app.id };
  const global = { projectId: project.id, environmentId: 'live' };
  const basic = { authMethod: 'basic', basicAuthUsername: 'u', basicAuthPassword: 'p' };
  const apiKey = { authMethod: 'apiKey', apiKey: 'k', apiKeyHeader: 'X-Key' };
  const webhooks = await Promise.all([
    make.webhook({ ...owner, url: goodUrl }),
    make.webhook({ ...owner, ...basic, url: badUrl }),
    make.webhook({ ...global, ...apiKey, url: goodUrl, disabled: true }),
  ]);
  const webhookIds = webhooks.map(({ id }) => id);
  const messages = await Promise.all(webhookIds.map((webhookId) => make.message({ webhookId })));
  const deliveries = messages.flatMap((message) => message.deliveries);
  const states = ['delivered', 'exhausted', 'cancelled'];
  await Promise.all(deliveries.map(({ id }, index) => make.deliveryOnce(states[index] ?? '', id)));
  return {
    projectId: [project.id],
    appId: [app.id],
    webhookId: webhookIds,
    messageId: messages.map(({ id }) => id),
    deliveryId: deliveries.map(({ id }) => id),
    resendId: [await startResend(api, webhookIds[1] ?? '')],
    cancellationId: [await startCancellation(api, app.id)],
    keyId: [await makeKey(api)],
    linkId: [await makeLink(api, app.id)],
    personId: [],
    invitationId: [await invite(api)],
    eventTypeName: [await makeEventType(api, project.id)],
  };
}

/** The name is another one in each project. */
async function makeEventType(api: ApiClient, projectId: string): Promise<string> {
  const name = `order.paid.${projectId}`;
  dataOf(await api.post(`/api/v1/projects/${projectId}/event-types`, { name }), 201);
  return name;
}

/** Event types of the project that is kept. */
async function makeEventTypes(api: ApiClient, projectId: string): Promise<string[]> {
  const names = Array.from({ length: DISPOSABLE }, (_, n) => `order.unused.${n}`);
  const path = `/api/v1/projects/${projectId}/event-types`;
  for (const name of names) dataOf(await api.post(path, { name }), 201);
  return names;
}

async function startResend(api: ApiClient, webhookId: string): Promise<string> {
  const since = '2026-01-01T00:00:00Z';
  const answer = await api.post(`/api/v1/webhooks/${webhookId}/resend-failed`, { since });
  return dataOf<{ id: string }>(answer, 202).id;
}

async function startCancellation(api: ApiClient, appId: string): Promise<string> {
  const answer = await api.post('/api/v1/deliveries/cancel', { appId, eventType: 'none' });
  return dataOf<{ id: string }>(answer, 202).id;
}

async function makeKey(api: ApiClient): Promise<string> {
  const answer = await api.post('/api/v1/api-keys', { name: 'Throw away' });
  return dataOf<{ id: string }>(answer, 201).id;
}

async function makeLink(api: ApiClient, appId: string): Promise<string> {
  return (await makePortalLink(api, appId, { capabilities: ['view'] })).id;
}

async function invite(api: ApiClient): Promise<string> {
  const answer = await api.post('/api/v1/invitations', { role: 'viewer' });
  return dataOf<{ id: string }>(answer, 201).id;
}

async function makeDisposable(api: ApiClient, { goodUrl }: Places): Promise<Ids> {
  const make = createResources(api);
  const app = await make.app();
  const each = async <Made>(what: (resources: Resources) => Promise<Made>): Promise<Made[]> => {
    const made: Made[] = [];
    while (made.length < DISPOSABLE) {
      made.push(...(await Promise.all(Array.from({ length: AT_ONCE }, () => what(make)))));
    }
    return made;
  };
  const [projects, apps, webhooks, keyId, linkId, invitationId] = await Promise.all([
    each(({ project }) => project()),
    each((resources) => resources.app()),
    each(({ webhook }) => webhook({ appId: app.id, url: goodUrl })),
    each(() => makeKey(api)),
    each(() => makeLink(api, app.id)),
    each(() => invite(api)),
  ]);
  const held = await make.webhook({ appId: app.id, url: goodUrl });
  dataOf(await api.post(`/api/v1/webhooks/${held.id}/hold`, {}));
  // They stay pending until they are cancelled.
  const waiting = await each(({ message }) => message({ webhookId: held.id }));
  const idsOf = (made: { id: string }[]): string[] => made.map(({ id }) => id);
  return {
    projectId: idsOf(projects),
    appId: idsOf(apps),
    webhookId: idsOf(webhooks),
    keyId,
    linkId,
    personId: [],
    invitationId,
    // One is enough: it can be erased again and again.
    messageId: [(await make.message({ appId: app.id })).id],
    deliveryId: waiting.flatMap(({ deliveries }) => deliveries.map(({ id }) => id)),
    resendId: [],
    cancellationId: [],
    eventTypeName: [],
  };
}

/** Names of parameters and fields that hold an id, with the prefix of those ids. */
const ID_FIELDS = {
  projectId: 'proj',
  appId: 'app',
  webhookId: 'wh',
  messageId: 'msg',
  deliveryId: 'dlv',
  resendId: 'rsnd',
  cancellationId: 'cncl',
  keyId: 'key',
  linkId: 'plnk',
  personId: 'usr',
  invitationId: 'inv',
  eventTypeName: 'order',
} as const;

type IdField = keyof typeof ID_FIELDS;

export type Ids = Record<IdField, string[]>;

export interface KnownIds {
  /** Of the caller's company, never deleted. */
  own: Ids;
  /** Of the caller's company, for deletes. */
  disposable: Ids;
  /** Of another company. */
  foreign: Ids;
  blocked: BlockedKey;
}

export function isIdField(name: string): name is IdField {
  return Object.hasOwn(ID_FIELDS, name);
}

/** Generates well-formed ids that do not exist. */
export const unknownId = (field: IdField): fc.Arbitrary<string> =>
  fc
    .string({
      unit: fc.constantFrom('0', '1', 'a', 'k', 'm', 'z'),
      minLength: 25,
      maxLength: 25,
    })
    .map((random) => `${ID_FIELDS[field]}_0${random}`);

/** Texts in place of an id that careless code may interpret. */
export const ODD_IDS = [
  ...['__proto__', 'constructor', 'toString', '$where', '{"$gt":""}', '[object Object]', 'null'],
  ...['0', '-1', '*', '.*', '../projects', 'a/b', '%', '\0', '\u202e', '😀', "' OR 1=1 --", ' '],
  ...['${7*7}', 'proj_', 'é'.repeat(100), 'x'.repeat(128)],
];
