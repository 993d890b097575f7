import type { Posthorn, SendMessage } from '@posthorn/client';
import type { ProbedChange } from './probes.ts';

/** Something that is changed, and the message that shows it. */
export interface Subject extends Pick<ProbedChange, 'name' | 'before' | 'after' | 'meanwhile'> {
  message: SendMessage;
  /** The key that sends the message; that of the company by default. */
  apiKey?: string;
  /** Resolves when the API has responded to the change. */
  change: () => Promise<unknown>;
}

/** Where everything is changed, as its administrator sees it. */
export interface Stage {
  api: Posthorn;
  projectId: string;
  /** Returns the URL of an endpoint by its name. */
  urlOf: (endpoint: string) => string;
  narrow: App;
  wide: App;
}

interface App {
  id: string;
  name: 'an app' | 'a wide app';
}

/** An app whose messages have an event type of their own for each subject, so that it serves for many. */
interface Place extends Omit<Stage, 'narrow' | 'wide'> {
  app: App;
  /** The number of the set of subjects. */
  set: number;
}

/** An app with more than 100 webhooks is wide: gateways look its webhooks up by event type. */
const FILLERS = 101;
const FILLER = 'filler';
const CREATED_AT_ONCE = 8;
const payload = { kind: 'probe' };
const NOT_FOUND = { status: 404, endpoints: [] };
const UNSENT = { status: 202, endpoints: [] };
const sentTo = (...endpoints: readonly string[]) => ({ status: 202, endpoints });

export async function openStage(api: Posthorn, urlOf: Stage['urlOf']): Promise<Stage> {
  const { id: projectId } = await api.projects.create({ name: 'changes' });
  const base = { api, projectId, urlOf };
  return { ...base, narrow: await openApp(base), wide: await openWideApp(base) };
}

/** Creates everything that one set of changes is about: each kind for an app with few webhooks, and for a wide one. */
export async function arrange({ narrow, wide, ...base }: Stage, set: number): Promise<Subject[]> {
  const deletedWide = await openWideApp(base);
  const placeOf = (app: App): Place => ({ ...base, app, set });
  const own = async (): Promise<Place> => placeOf(await openApp(base));
  return Promise.all([
    ...CHANGED_IN_APP.flatMap((subjectIn) => [narrow, wide].map((app) => subjectIn(placeOf(app)))),
    ...CHANGED_ALONE.map(async (subjectIn) => subjectIn(await own())),
    deletedApp(placeOf(deletedWide)),
    movedUid(await own(), await own()),
  ]);
}

type Base = Pick<Stage, 'api' | 'projectId'>;

async function openApp({ api, projectId }: Base): Promise<App> {
  const name = 'an app';
  const { id } = await api.apps.create({ name, projectId });
  return { id, name };
}

async function openWideApp(base: Base & Pick<Stage, 'urlOf'>): Promise<App> {
  const { api, urlOf } = base;
  const { id } = await openApp(base);
  const filler = { url: urlOf(FILLER), appId: id, eventTypes: [FILLER] };
  const creating = Array.from({ length: CREATED_AT_ONCE }, async (_, first) => {
    for (let n = first; n < FILLERS; n += CREATED_AT_ONCE) await api.webhooks.create(filler);
  });
  await Promise.all(creating);
  return { id, name: 'a wide app' };
}

type WebhookFields = Partial<Parameters<Posthorn['webhooks']['create']>[0]>;

const eventTypeOf = (kind: string, { set }: Place): string => `${kind}.${set}`;

/** Creates a webhook that gets the messages of this kind alone. */
async function createWebhook(place: Place, kind: string, more: WebhookFields = {}) {
  const { api, app, urlOf } = place;
  const own = { url: urlOf('a'), appId: app.id, eventTypes: [eventTypeOf(kind, place)] };
  return (await api.webhooks.create({ ...own, ...more })).id;
}

/** Returns the message of a subject to its app. */
function toApp(place: Place, kind: string) {
  const message = { appId: place.app.id, eventType: eventTypeOf(kind, place), payload };
  return { name: `${kind} of ${place.app.name}`, message };
}

/** One webhook, which this change takes the messages away from. */
function webhookWith(kind: string, changed: object, fields: WebhookFields = {}) {
  return async (place: Place): Promise<Subject> => {
    const id = await createWebhook(place, kind, fields);
    return {
      ...toApp(place, kind),
      before: sentTo('a'),
      after: UNSENT,
      change: () => place.api.webhooks.update(id, changed),
    };
  };
}

async function changedUrl(place: Place): Promise<Subject> {
  const id = await createWebhook(place, 'changed-url');
  return {
    ...toApp(place, 'changed-url'),
    before: sentTo('a'),
    after: sentTo('b'),
    change: () => place.api.webhooks.update(id, { url: place.urlOf('b') }),
  };
}

async function createdWebhook(place: Place): Promise<Subject> {
  await createWebhook(place, 'created-webhook');
  return {
    ...toApp(place, 'created-webhook'),
    before: sentTo('a'),
    after: sentTo('a', 'b'),
    change: () => createWebhook(place, 'created-webhook', { url: place.urlOf('b') }),
  };
}

async function deletedWebhook(place: Place): Promise<Subject> {
  const id = await createWebhook(place, 'deleted-webhook');
  await createWebhook(place, 'deleted-webhook', { url: place.urlOf('b') });
  return {
    ...toApp(place, 'deleted-webhook'),
    before: sentTo('a', 'b'),
    after: sentTo('b'),
    change: () => place.api.webhooks.delete(id),
  };
}

const CHANGED_IN_APP: readonly ((place: Place) => Promise<Subject>)[] = [
  changedUrl,
  createdWebhook,
  deletedWebhook,
  webhookWith('disabled-webhook', { disabled: true }),
  webhookWith('changed-event-types', { eventTypes: ['another'] }),
  webhookWith(
    'changed-filter',
    { filter: { payload: { kind: 'another' } } },
    { filter: { payload } },
  ),
];

async function deletedApp(place: Place): Promise<Subject> {
  await createWebhook(place, 'deleted-app');
  return {
    ...toApp(place, 'deleted-app'),
    before: sentTo('a'),
    after: NOT_FOUND,
    meanwhile: [UNSENT],
    change: () => place.api.apps.delete(place.app.id),
  };
}

async function addressedWebhook(place: Place): Promise<Subject> {
  const webhookId = await createWebhook(place, 'addressed');
  return {
    name: 'a deleted webhook that messages name',
    message: { webhookId, payload },
    before: sentTo('a'),
    after: NOT_FOUND,
    meanwhile: [UNSENT],
    change: () => place.api.webhooks.delete(webhookId),
  };
}

async function heldApp(place: Place): Promise<Subject> {
  await createWebhook(place, 'held-app');
  return {
    ...toApp(place, 'held-app'),
    before: sentTo('a'),
    after: UNSENT,
    change: () => place.api.apps.hold(place.app.id, { reason: 'a fault' }),
  };
}

async function revokedKey(place: Place): Promise<Subject> {
  await createWebhook(place, 'revoked-key');
  const { id, key } = await place.api.apiKeys.create({ name: 'a key that is revoked' });
  return {
    ...toApp(place, 'revoked-key'),
    // Null for a repeat only.
    apiKey: key ?? '',
    before: sentTo('a'),
    after: { status: 401, endpoints: [] },
    change: () => place.api.apiKeys.revoke(id),
  };
}

async function stricterProject({ api, ...rest }: Place): Promise<Subject> {
  const { id: projectId } = await api.projects.create({ name: 'a project of its own' });
  const place = { ...rest, api, projectId, app: await openApp({ api, projectId }) };
  await createWebhook(place, 'stricter-project');
  return {
    ...toApp(place, 'stricter-project'),
    before: sentTo('a'),
    after: { status: 422, endpoints: [] },
    change: () => api.projects.update(projectId, { eventTypePolicy: 'known' }),
  };
}

/** Each has an app of its own. */
const CHANGED_ALONE: readonly ((place: Place) => Promise<Subject>)[] = [
  addressedWebhook,
  deletedApp,
  heldApp,
  revokedKey,
  stricterProject,
];

async function movedUid(from: Place, to: Place): Promise<Subject> {
  const { apps } = from.api;
  const uid = `moved-${from.app.id}`;
  await apps.update(from.app.id, { uid });
  await createWebhook(from, 'moved-uid');
  await createWebhook(to, 'moved-uid', { url: to.urlOf('b') });
  const { message } = toApp(from, 'moved-uid');
  return {
    name: 'a uid that moves to another app',
    message: { ...message, appId: `uid:${uid}` },
    before: sentTo('a'),
    after: sentTo('b'),
    meanwhile: [NOT_FOUND],
    async change() {
      await apps.update(from.app.id, { uid: null });
      await apps.update(to.app.id, { uid });
    },
  };
}
