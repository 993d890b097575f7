import { type DocumentOf, Secret, type WebhookFields } from '../plan/documents.ts';
import { mapEventType } from './event-types.ts';
import {
  collectFindings,
  eventTypesOf,
  filterOf,
  type Finding,
  headersOf,
  longDescription,
  type Mapped,
  type MappedApp,
  type MappedEventType,
  type MappedWebhook,
  metadataOf,
  metadataText,
  nameOf,
  type Note,
  qualify,
  rateOf,
  standardSecretOf,
  type Target,
  uidOf,
  type Unmapped,
  unreadable,
  urlOf,
  webhookDocument,
} from './mapping.ts';
import {
  attemptRead,
  idOf,
  type Json,
  jsonOf,
  jsonsOf,
  mapConcurrently,
  numberOf,
  objectsOf,
  type PeerApi,
  PeerRefusal,
  type Query,
  type Read,
  readAhead,
  refusalOf,
  step,
  textOf,
  textsOf,
} from './peer-api.ts';

/*
 * Facts about Svix, from its API document (https://api.svix.com/api/v1/openapi.json, version 1.960.0) and the models of
 * its libraries (2.5.0):
 *  - Routes under /api/v1: app, app/{id}/endpoint and app/{id}/destination are lists with `limit` (at most 250),
 *    `iterator`, `data`, `done`. Of an endpoint: secret, headers, transformation. A path takes ids and uids.
 *  - event-type is a list too, with archived ones by `include_archived`; `with_content` adds `schemas` by version, with
 *    `examples` in them.
 *  - Authentication: `Authorization: Bearer`. The end of a token names its region.
 *  - uids have up to 256 letters, digits and - _ . ; those of endpoints are unique in their app.
 *  - A secret is base64 of random bytes with or without `whsec_`; for asymmetric signatures it is `whpk_` and the public key.
 *  - `filterTypes` and `channels` of null select all. `throttleRate` counts messages per second (before: `rateLimit`).
 *  - Values of headers named in `sensitive` are not shown.
 */

const PAGE_SIZE = 250;
/** Requests under way at once: apps whose lists are read ahead, and endpoints. */
const APPS_AHEAD = 4;
const ENDPOINTS_AT_ONCE = 8;

export const SVIX_REGIONS: Readonly<Record<string, string>> = {
  us: 'https://api.us.svix.com',
  eu: 'https://api.eu.svix.com',
  in: 'https://api.in.svix.com',
  ca: 'https://api.ca.svix.com',
  au: 'https://api.au.svix.com',
};

/** The address that belongs to a token. */
export function svixUrlOf(token: string): string {
  return SVIX_REGIONS[token.split('.').at(-1) ?? ''] ?? 'https://api.svix.com';
}

/** What was read of one endpoint. */
export interface SvixEndpoint {
  endpoint: Json;
  /** Null when the service has none. */
  secret: string | null;
  headers: Json;
  transformation: Json;
}

/** Reads event types, then apps, and the endpoints of each after it. */
export async function* readSvix(api: PeerApi, target: Target): AsyncGenerator<Mapped> {
  yield* readEventTypes(api);
  const parts = mapConcurrently(appsOf(api, target), APPS_AHEAD, (app) => readApp(api, app));
  for await (const part of parts) {
    if ('object' in part) {
      yield part;
      continue;
    }
    const { app, endpoints } = part;
    const mapped = mapApp(app, target);
    yield { ...mapped, findings: [...mapped.findings, ...part.findings] };
    yield* mapConcurrently(endpoints, ENDPOINTS_AT_ONCE, (endpoint) =>
      readEndpoint(api, app, endpoint, mapped.document),
    );
  }
}

async function* readEventTypes(api: PeerApi): AsyncGenerator<Mapped> {
  const query = { with_content: 'true', include_archived: 'true' };
  for await (const type of objectsOf(pagesOf(api, '/api/v1/event-type', query))) {
    if (type instanceof PeerRefusal) yield unreadable('event types', 'event types', type);
    else yield mapSvixEventType(type);
  }
}

/** The newest of its schemas comes over, and the first of the examples in it. */
export function mapSvixEventType(type: Json): MappedEventType | Unmapped {
  const { findings, note } = collectFindings();
  const name = textOf(type.name) ?? '';
  const schemas = jsonOf(type.schemas);
  const newest = Math.max(0, ...Object.keys(schemas).map(Number));
  // It names an earlier draft, whose usual keywords are those of today.
  const { $schema: _draft, ...schema } = jsonOf(schemas[String(newest)]);
  if (jsonsOf(type.featureFlags).length > 0 || textOf(type.featureFlag) !== undefined) {
    note('leftOut', 'feature flags of event types: all customers see them');
  }
  const mapped = {
    name,
    source: `Svix event type ${name}`,
    description: textOf(type.description) ?? '',
    group: textOf(type.groupName),
    schema: newest === 0 ? undefined : schema,
    example: jsonsOf(schema.examples)[0],
    isDeprecated: type.deprecated === true,
    isArchived: type.archived === true,
  };
  return mapEventType(mapped, findings, note);
}

async function* appsOf(api: PeerApi, { only }: Target): AsyncGenerator<Read> {
  if (only.length === 0) {
    // Without the list of apps there is nothing to go on with, so its failure ends all.
    for await (const page of pagesOf(api, '/api/v1/app')) yield* page;
  }
  for (const id of only) yield await attemptRead(() => api.get(`/api/v1/app/${step(id)}`));
}

interface Part {
  app: Json;
  endpoints: AsyncIterable<Read>;
  findings: readonly Finding[];
}

async function readApp(api: PeerApi, app: Read): Promise<Part | Unmapped> {
  if (app instanceof PeerRefusal) return unreadable('an app', 'apps', app);
  const path = `/api/v1/app/${step(idOf(app, 'id', api))}`;
  const { findings, note } = collectFindings();
  await noteDestinations(api, path, note);
  const endpoints = await readAhead(objectsOf(pagesOf(api, `${path}/endpoint`)));
  return { app, endpoints, findings };
}

/** Destinations are those of Svix's newer versions, such as queues and polling endpoints. Others answer 404. */
async function noteDestinations(api: PeerApi, path: string, note: Note): Promise<void> {
  const pages = pagesOf(api, `${path}/destination`);
  for await (const destination of objectsOf(pages)) {
    if (!(destination instanceof PeerRefusal)) {
      const { type, id } = destination;
      note('leftOut', `destinations of the type ${textOf(type) ?? 'unknown'}`, textOf(id));
    } else if (destination.status !== 404) {
      note('failed', 'destinations', destination.message);
    }
  }
}

async function* pagesOf(
  api: PeerApi,
  path: string,
  options: Query = {},
): AsyncGenerator<Json[], void, undefined> {
  const seen = new Set<string>();
  let iterator: string | undefined;
  do {
    const query: Query = { ...options, limit: PAGE_SIZE, iterator };
    const page = await api.get(path, query);
    yield jsonsOf(page.data);
    iterator = page.done === true ? undefined : textOf(page.iterator);
    if (iterator !== undefined && seen.has(iterator)) {
      throw new PeerRefusal(`${api.name} returned the iterator ${iterator} twice (GET ${path})`);
    }
    if (iterator !== undefined) seen.add(iterator);
  } while (iterator !== undefined);
}

async function readEndpoint(
  api: PeerApi,
  app: Json,
  endpoint: Read,
  document: DocumentOf<'App'>,
): Promise<Mapped> {
  const appId = idOf(app, 'id', api);
  if (endpoint instanceof PeerRefusal) return unreadable(`app ${appId}`, 'endpoints', endpoint);
  const id = textOf(endpoint.id) ?? '';
  const path = `/api/v1/app/${step(appId)}/endpoint/${step(id)}`;
  try {
    const [secret, headers, transformation] = await Promise.all([
      api.get(`${path}/secret`),
      api.get(`${path}/headers`),
      // The open-source server has no transformations.
      api.find(`${path}/transformation`),
    ]);
    const read = { endpoint, secret: textOf(secret.key) ?? null, headers };
    return mapEndpoint({ ...read, transformation: transformation ?? {} }, document);
  } catch (error) {
    return unreadable(`endpoint ${id} of app ${appId}`, 'endpoints', refusalOf(error));
  }
}

export function mapApp(app: Json, { projectId, environment }: Target): MappedApp {
  const { findings, note } = collectFindings();
  const id = textOf(app.id) ?? '';
  const uid = uidOf(textOf(app.uid), id, note);
  if ((numberOf(app.throttleRate) ?? numberOf(app.rateLimit) ?? 0) > 0) {
    note('leftOut', 'rate limits of whole apps: webhooks have their own');
  }
  const fields = {
    projectId,
    environment,
    name: nameOf(textOf(app.name), uid, note),
    metadata: metadataOf(app.metadata, {}, note),
  };
  return {
    kind: 'App',
    document: { kind: 'App', uid, source: `Svix app ${id}`, fields },
    findings,
  };
}

export function mapEndpoint(read: SvixEndpoint, app: DocumentOf<'App'>): MappedWebhook {
  const { findings, note } = collectFindings();
  const { endpoint } = read;
  const id = textOf(endpoint.id) ?? '';
  const uid = uidOf(textOf(endpoint.uid), id, note);
  const source = `Svix endpoint ${id}`;
  const customHeaders = headersOf(read.headers.headers, source, note);
  const keptHeaders = textsOf(read.headers.sensitive);
  for (const name of keptHeaders) note('byHand', 'values of sensitive headers', name);
  const eventTypes = eventTypesOf(textsOf(endpoint.filterTypes), note);
  const channels = textsOf(endpoint.channels).toSorted();
  const filtered = channelFilter(channels, note);
  const isTransformed = read.transformation.enabled === true;
  if (isTransformed) note('heldBack', 'transformations: Posthorn sends payloads as they are');
  const isHeldBack = eventTypes === null || filtered.isHeldBack || isTransformed;
  const description = textOf(endpoint.description);
  const fields: WebhookFields = {
    url: urlOf(textOf(endpoint.url) ?? '', customHeaders, source, note),
    name: nameOf(description, uid, note),
    ...signatureOf(read.secret, source, note),
    customHeaders,
    eventTypes: eventTypes ?? [],
    filter: filtered.filter,
    disabled: endpoint.disabled === true,
    rateLimitPerSecond: rateOf(
      numberOf(endpoint.throttleRate) ?? numberOf(endpoint.rateLimit),
      1,
      note,
    ),
    metadata: metadataOf(
      endpoint.metadata,
      { description: longDescription(description), svixChannels: channelsText(channels) },
      note,
    ),
  };
  return {
    kind: 'Webhook',
    document: webhookDocument(app, { uid, source }, fields),
    app,
    qualifiedUid: qualify(app.uid, uid),
    isHeldBack,
    keptHeaders,
    findings,
  };
}

/** Channels become a condition on tags: the application sends the channels of a message as its tags. */
function channelFilter(channels: readonly string[], note: Note): ReturnType<typeof filterOf> {
  if (channels.length === 0) return { filter: null, isHeldBack: false };
  const about = 'channels: a filter selects messages with one of them as a tag';
  note('changed', about, channels.join(', '));
  return filterOf({ tags: { $or: channels } }, note);
}

function channelsText(channels: readonly string[]): string | undefined {
  return channels.length === 0 ? undefined : metadataText(channels.join(','));
}

/** The receiver of a secret keeps it, and with `svix` its library too (docs/contract.md C9.15). */
function signatureOf(secret: string | null, source: string, note: Note): Partial<WebhookFields> {
  const signatureHeaders: WebhookFields['signatureHeaders'] = ['webhook', 'svix'];
  if (secret?.startsWith('whpk_')) {
    note(
      'receiver',
      'asymmetric signatures: it takes the public key of the company (posthorn, docs/contract.md C16)',
    );
    return { signatureHeaders, authMethod: 'hmac', signatureAlgorithm: 'ed25519' };
  }
  const standard = secret === null ? null : standardSecretOf(secret);
  if (standard !== null) return { signatureHeaders, secret: new Secret(source, standard) };
  note('receiver', 'a secret of another form: it takes the new one of the webhook');
  return { signatureHeaders };
}
