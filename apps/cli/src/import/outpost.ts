import { type DocumentOf, Secret, type WebhookFields } from '../plan/documents.ts';
import {
  collectFindings,
  eventTypesOf,
  filterOf,
  headersOf,
  type Mapped,
  type MappedApp,
  type MappedWebhook,
  metadataOf,
  nameOf,
  type Note,
  qualify,
  standardSecretOf,
  type Target,
  uidOf,
  unreadable,
  urlOf,
  webhookDocument,
} from './mapping.ts';
import {
  attemptRead,
  idOf,
  isJson,
  type Json,
  jsonOf,
  jsonsOf,
  mapConcurrently,
  type PeerApi,
  PeerRefusal,
  type Read,
  refusalOf,
  step,
  textOf,
  textsOf,
} from './peer-api.ts';

/*
 * Facts about Outpost, from its API document (docs/apis/openapi.yaml of hookdeck/outpost, API 2025-07-01) and its page
 * about webhook destinations (docs/pages/destinations/webhook.mdx):
 *  - `tenants` is a list with `limit` (at most 100), `next`, `models`, `pagination.next`; 501 without RediSearch.
 *    `tenants/{id}/destinations` is an array without pages. `topics` is an array of texts.
 *  - Authentication: `Authorization: Bearer` and the admin API key.
 *  - Ids of tenants are any text; ids of destinations may be the client's own.
 *  - `topics` is "*" or a list. `filter` is an object or null. `disabled_at` is a time or null.
 *  - `config.custom_headers` is an object as JSON text. `delivery_metadata` comes as headers of each delivery.
 *  - Default mode: the hex HMAC SHA-256 in `x-outpost-signature` behind `v0=`, under the text of the secret.
 *    Standard mode: Standard Webhooks, with secrets of `whsec_` and base64. The API does not tell the mode.
 */

export const OUTPOST_URL = 'https://api.outpost.hookdeck.com/2025-07-01';
const PAGE_SIZE = 100;
const TENANTS_AT_ONCE = 8;

/** Reads tenants, and the destinations of each after it. */
export async function* readOutpost(api: PeerApi, target: Target): AsyncGenerator<Mapped> {
  const parts = mapConcurrently(tenantsOf(api, target), TENANTS_AT_ONCE, (tenant) =>
    readTenant(api, tenant, target),
  );
  for await (const part of parts) yield* part;
}

async function* tenantsOf(api: PeerApi, { only }: Target): AsyncGenerator<Read> {
  for (const id of only) yield await attemptRead(() => api.get(`/tenants/${step(id)}`));
  if (only.length > 0) return;
  const seen = new Set<string>();
  let next: string | undefined;
  do {
    const page = await firstPageOf(api, next);
    yield* jsonsOf(page.models);
    next = textOf(jsonOf(page.pagination).next);
    if (next !== undefined && seen.has(next)) {
      throw new PeerRefusal(`${api.name} returned the cursor ${next} twice (GET /tenants)`);
    }
    if (next !== undefined) seen.add(next);
  } while (next !== undefined);
}

async function firstPageOf(api: PeerApi, next: string | undefined): Promise<Json> {
  try {
    return await api.get('/tenants', { limit: PAGE_SIZE, next });
  } catch (error) {
    const { status, message } = refusalOf(error);
    if (status !== 501) throw error;
    throw new PeerRefusal(`${message}: it has no RediSearch. Name the tenants with --only`);
  }
}

async function readTenant(api: PeerApi, tenant: Read, target: Target): Promise<Mapped[]> {
  if (tenant instanceof PeerRefusal) return [unreadable('a tenant', 'tenants', tenant)];
  const id = idOf(tenant, 'id', api);
  const app = mapTenant(tenant, target);
  try {
    const destinations = await api.list(`/tenants/${step(id)}/destinations`);
    return [app, ...destinations.map((each) => mapDestination(each, id, app.document))];
  } catch (error) {
    return [app, unreadable(`tenant ${id}`, 'destinations', refusalOf(error))];
  }
}

export function mapTenant(tenant: Json, { projectId, environment }: Target): MappedApp {
  const { findings, note } = collectFindings();
  const id = textOf(tenant.id) ?? '';
  const uid = uidOf(undefined, id, note);
  const fields = {
    projectId,
    environment,
    name: nameOf(id, uid, note),
    metadata: metadataOf(tenant.metadata, {}, note),
  };
  const document = { kind: 'App', uid, source: `Outpost tenant ${id}`, fields } as const;
  return { kind: 'App', document, findings };
}

export function mapDestination(
  destination: Json,
  tenantId: string,
  app: DocumentOf<'App'>,
): Mapped {
  const { findings, note } = collectFindings();
  const id = textOf(destination.id) ?? '';
  const type = textOf(destination.type) ?? 'unknown';
  if (type === 'webhook') return mapWebhook(destination, app);
  note('leftOut', `destinations of the type ${type}`);
  return { kind: 'Unmapped', object: `destination ${id} of tenant ${tenantId}`, findings };
}

function mapWebhook(destination: Json, app: DocumentOf<'App'>): MappedWebhook {
  const { findings, note } = collectFindings();
  const id = textOf(destination.id) ?? '';
  const uid = uidOf(undefined, id, note);
  const source = `Outpost destination ${id}`;
  const config = jsonOf(destination.config);
  const customHeaders = headersOf(headersIn(config.custom_headers, note), source, note);
  const topics = textsOf(destination.topics);
  const eventTypes = eventTypesOf(topics.includes('*') ? [] : topics, note);
  const given = jsonOf(destination.filter);
  const isFiltered = Object.keys(given).length > 0;
  const filtered = isFiltered ? filterOf(conditionsOf(given), note) : UNFILTERED;
  for (const key of Object.keys(jsonOf(destination.delivery_metadata))) {
    note('leftOut', 'delivery metadata, and the headers that it makes', key);
  }
  const url = urlOf(textOf(config.url) ?? '', customHeaders, source, note);
  const fields: WebhookFields = {
    url,
    name: nameOf(textOf(destination.target) ?? url, uid, note),
    ...signatureOf(jsonOf(destination.credentials), source, note),
    customHeaders,
    eventTypes: eventTypes ?? [],
    filter: filtered.filter,
    disabled: textOf(destination.disabled_at) !== undefined,
    metadata: metadataOf(destination.metadata, {}, note),
  };
  return {
    kind: 'Webhook',
    document: webhookDocument(app, { uid, source }, fields),
    app,
    qualifiedUid: qualify(app.uid, uid),
    isHeldBack: eventTypes === null || filtered.isHeldBack,
    keptHeaders: [],
    findings,
  };
}

const UNFILTERED = { filter: null, isHeldBack: false } as const;

/** The parts of an event, and their names here. Metadata, id and time of an event have none. */
const PARTS: Readonly<Record<string, string>> = { data: 'payload', topic: 'eventType' };

/** Returns the filter with the names of Posthorn; null when it is about a part that a message has not. */
function conditionsOf(filter: Json): Json | null {
  const entries = Object.entries(filter).map(([key, value]) => {
    const part = PARTS[key];
    if (part !== undefined) return [part, value] as const;
    if (key === '$not') return [key, isJson(value) ? conditionsOf(value) : null] as const;
    if (key !== '$and' && key !== '$or') return [key, null] as const;
    const each = jsonsOf(value).map(conditionsOf);
    return [key, each.includes(null) ? null : each] as const;
  });
  return entries.some(([, value]) => value === null) ? null : Object.fromEntries(entries);
}

/** The API has the headers as JSON text, and as an object in later versions perhaps. */
function headersIn(value: unknown, note: Note): unknown {
  if (typeof value !== 'string' || value === '') return value;
  try {
    const parsed: unknown = JSON.parse(value);
    if (isJson(parsed)) return parsed;
  } catch {
    // Noted below: the message of JSON.parse shows a part of the text.
  }
  note('failed', 'custom headers that are no JSON object');
  return {};
}

/** A secret of Standard Webhooks is kept as one. Another one stays the key of the hex signature. */
function signatureOf(credentials: Json, source: string, note: Note): Partial<WebhookFields> {
  const secret = textOf(credentials.secret);
  const previous = textOf(credentials.previous_secret);
  if (previous !== undefined && previous !== secret) {
    note('receiver', 'a rotation under way: the old secret signs no more');
  }
  const standard = secret?.startsWith('whsec_') ? standardSecretOf(secret) : null;
  if (standard !== null) {
    note(
      'receiver',
      'nothing in standard mode. In default mode it verifies Standard Webhooks in place of x-outpost-signature, with the same secret',
    );
    return { authMethod: 'hmac', secret: new Secret(source, standard) };
  }
  if (secret === undefined) {
    note('receiver', 'no secret could be read: it takes the new one of the webhook');
    return {};
  }
  note(
    'receiver',
    'X-Service-Signature in place of x-outpost-signature: the hex HMAC SHA-256 of the body under the same secret, without v0=',
  );
  return { authMethod: 'hmac', hmacSecret: new Secret(source, secret) };
}
