import { type DocumentOf, Secret, type WebhookFields } from '../plan/documents.ts';
import { type ConvoySubscription, filterOfSubscriptions, hasFilter } from './convoy-filters.ts';
import {
  collectFindings,
  type CustomHeaders,
  eventTypesOf,
  filterOf,
  type Finding,
  headersOf,
  type Mapped,
  type MappedApp,
  type MappedWebhook,
  metadataOf,
  metadataText,
  nameOf,
  type Note,
  qualify,
  rateOf,
  type Target,
  timeoutOf,
  uidOf,
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
  refusalOf,
  step,
  textOf,
  textsOf,
} from './peer-api.ts';

/*
 * Facts about Convoy, from its API document (docs/swagger.json of frain-dev/convoy, version 26.3.5), its pages about
 * pagination, versions and signatures (getconvoy.io/docs), and the models of convoy.js:
 *  - Routes under /v1/projects/{id}: `endpoints` with `ownerId`, `subscriptions` with `endpointId`, and
 *    `subscriptions/{id}/filters` are lists; the first two with `perPage`, `direction`, `next_page_cursor`, and
 *    `data.content`, `data.pagination.{has_next_page, next_page_cursor}`. Every answer is in `data`.
 *  - Authentication: `Authorization: Bearer` and the API key. `X-Convoy-Version` names the format: 2024-04-01 has `url`
 *    and `name` and durations in seconds; before, `target_url` and `title` and texts such as `1m0s`.
 *  - Endpoints with the same `owner_id` get the events of that owner. Events go to the subscriptions of an endpoint:
 *    `filter_config.event_types` with `*` for all, filters (convoy-filters.ts), and a `function` that transforms.
 *    An endpoint without a subscription gets nothing.
 *  - `status` is active, inactive, paused, or pending in earlier versions. A secret without `expires_at` signs.
 *  - Simple signatures: the HMAC of the body under the text of the secret in `X-Convoy-Signature`, with hash and encoding of
 *    the newest version of the project's `config.signature`. Advanced ones: `t=…,v1=…` over time and body.
 */

const PAGE_SIZE = 100;
const ENDPOINTS_AT_ONCE = 8;
/** A project without settings of its own has these. */
const USUAL_SIGNATURE: Signature = {
  header: 'X-Convoy-Signature',
  hash: 'SHA256',
  encoding: 'hex',
};

/** How a project signs. */
export interface Signature {
  header: string;
  hash: string;
  encoding: string;
}

/** What was read of one endpoint. */
export interface ConvoyEndpoint {
  endpoint: Json;
  subscriptions: readonly ConvoySubscription[];
}

/** Reads endpoints, and the app of each before it: that of its owner, or one of its own. */
export async function* readConvoy(
  api: PeerApi,
  project: string,
  target: Target,
): AsyncGenerator<Mapped> {
  const base = `/v1/projects/${step(project)}`;
  const { signature, findings } = await readSignature(api, base);
  if (findings.length > 0) yield { kind: 'Unmapped', object: `project ${project}`, findings };
  const context = { api, base, signature, target };
  const endpoints = endpointsOf(api, base, target);
  const owners = new Set<string>();
  const read = mapConcurrently(endpoints, ENDPOINTS_AT_ONCE, (each) => readEndpoint(context, each));
  for await (const [owner, ...mapped] of read) {
    if (owner.kind !== 'App' || !owners.has(owner.document.uid)) yield owner;
    if (owner.kind === 'App') owners.add(owner.document.uid);
    yield* mapped;
  }
}

/** A key of the project may read its settings, or may not: then the usual ones count. */
async function readSignature(
  api: PeerApi,
  base: string,
): Promise<{ signature: Signature; findings: Finding[] }> {
  const { findings, note } = collectFindings();
  const answer = await attemptRead(() => api.get(base));
  if (answer instanceof PeerRefusal) {
    note(
      'byHand',
      'the settings of signatures of the project cannot be read: taken as SHA256 in hex',
    );
    return { signature: USUAL_SIGNATURE, findings };
  }
  const config = jsonOf(jsonOf(jsonOf(answer.data).config).signature);
  const newest = jsonsOf(config.versions).at(-1) ?? {};
  return {
    signature: {
      header: textOf(config.header) ?? USUAL_SIGNATURE.header,
      hash: textOf(newest.hash) ?? USUAL_SIGNATURE.hash,
      encoding: textOf(newest.encoding) ?? USUAL_SIGNATURE.encoding,
    },
    findings,
  };
}

async function* endpointsOf(api: PeerApi, base: string, { only }: Target): AsyncGenerator<Read> {
  const path = `${base}/endpoints`;
  if (only.length === 0) {
    // Without this list there is nothing to go on with, so its failure ends all.
    for await (const page of pagesOf(api, path)) yield* page;
  }
  for (const ownerId of only) yield* objectsOf(pagesOf(api, path, { ownerId }));
}

async function* pagesOf(
  api: PeerApi,
  path: string,
  query: Query = {},
): AsyncGenerator<Json[], void, undefined> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  do {
    const paging: Query = { perPage: PAGE_SIZE, direction: 'next', next_page_cursor: cursor };
    const { data } = await api.get(path, { ...query, ...paging });
    const { content, pagination } = jsonOf(data);
    yield jsonsOf(content);
    const { has_next_page: hasNext, next_page_cursor: next } = jsonOf(pagination);
    cursor = hasNext === true ? textOf(next) : undefined;
    if (cursor !== undefined && seen.has(cursor)) {
      throw new PeerRefusal(`${api.name} returned the cursor ${cursor} twice (GET ${path})`);
    }
    if (cursor !== undefined) seen.add(cursor);
  } while (cursor !== undefined);
}

interface Context {
  api: PeerApi;
  base: string;
  signature: Signature;
  target: Target;
}

/** Returns the app of an endpoint with its webhook, or why they could not be read. */
async function readEndpoint(context: Context, endpoint: Read): Promise<[Mapped, ...Mapped[]]> {
  const { api, signature, target } = context;
  if (endpoint instanceof PeerRefusal) return [unreadable('endpoints', 'endpoints', endpoint)];
  const id = idOf(endpoint, 'uid', api);
  try {
    const subscriptions = await readSubscriptions(context, id);
    const owner = mapOwner(endpoint, target);
    return [owner, mapEndpoint({ endpoint, subscriptions }, signature, owner.document)];
  } catch (error) {
    return [unreadable(`endpoint ${id}`, 'endpoints', refusalOf(error))];
  }
}

async function readSubscriptions(
  { api, base }: Context,
  endpointId: string,
): Promise<ConvoySubscription[]> {
  const subscriptions: ConvoySubscription[] = [];
  for await (const page of pagesOf(api, `${base}/subscriptions`, { endpointId })) {
    for (const subscription of page) {
      const path = `${base}/subscriptions/${step(idOf(subscription, 'uid', api))}/filters`;
      const filters = await api.find(path);
      subscriptions.push({ subscription, filters: jsonsOf(filters?.data) });
    }
  }
  return subscriptions;
}

/** The app of an endpoint. One without an owner gets events by its own id only, so it has an app of its own. */
export function mapOwner(endpoint: Json, { projectId, environment }: Target): MappedApp {
  const { findings, note } = collectFindings();
  const owner = textOf(endpoint.owner_id);
  const id = textOf(endpoint.uid) ?? '';
  const uid = uidOf(undefined, owner ?? id, note);
  const name = owner ?? textOf(endpoint.name) ?? textOf(endpoint.title);
  const source = owner === undefined ? `Convoy endpoint ${id}` : `Convoy owner ${owner}`;
  // A name that is cut here is that of the endpoint too, where it is noted.
  const fields = { projectId, environment, name: nameOf(name, uid, () => undefined) };
  return { kind: 'App', document: { kind: 'App', uid, source, fields }, findings };
}

export function mapEndpoint(
  { endpoint, subscriptions }: ConvoyEndpoint,
  signature: Signature,
  app: DocumentOf<'App'>,
): MappedWebhook {
  const { findings, note } = collectFindings();
  const id = textOf(endpoint.uid) ?? '';
  const uid = uidOf(undefined, id, note);
  const source = `Convoy endpoint ${id}`;
  const { customHeaders, ...authentication } = authenticationOf(endpoint, signature, source, note);
  const selection = selectionOf(subscriptions, note);
  const fields: WebhookFields = {
    url: urlOf(
      textOf(endpoint.url) ?? textOf(endpoint.target_url) ?? '',
      authentication.authMethod === 'oauth2' ? null : customHeaders,
      source,
      note,
    ),
    name: nameOf(textOf(endpoint.name) ?? textOf(endpoint.title), uid, note),
    ...authentication,
    customHeaders,
    ...tlsOf(jsonOf(endpoint.mtls_client_cert), source, note),
    eventTypes: selection.eventTypes,
    filter: selection.filter,
    disabled: endpoint.status !== 'active' || endpoint.is_disabled === true,
    rateLimitPerSecond: rateOf(
      numberOf(endpoint.rate_limit),
      secondsOf(endpoint.rate_limit_duration) ?? 1,
      note,
    ),
    timeoutSeconds: timeoutOf(secondsOf(endpoint.http_timeout), note),
    metadata: metadataOf(null, ownMetadata(endpoint, note), note),
  };
  return {
    kind: 'Webhook',
    document: webhookDocument(app, { uid, source }, fields),
    app,
    qualifiedUid: qualify(app.uid, uid),
    isHeldBack: selection.isHeldBack,
    keptHeaders: [],
    findings,
  };
}

function ownMetadata(endpoint: Json, note: Note): Record<string, string | undefined> {
  // The URL of a Slack channel is a credential.
  if (textOf(endpoint.slack_webhook_url) !== undefined) {
    note('leftOut', 'Slack channels that hear of failing endpoints: see docs/operator-events.md');
  }
  if ((textOf(endpoint.content_type) ?? 'application/json') !== 'application/json') {
    note('leftOut', 'payloads in another form than JSON', textOf(endpoint.content_type));
  }
  return {
    description: metadataText(textOf(endpoint.description) ?? '') || undefined,
    supportEmail: textOf(endpoint.support_email),
  };
}

/** Returns the event types of all subscriptions together, and their filter. */
function selectionOf(
  subscriptions: readonly ConvoySubscription[],
  note: Note,
): Required<Pick<WebhookFields, 'filter' | 'eventTypes'>> & { isHeldBack: boolean } {
  if (subscriptions.length === 0) {
    note('heldBack', 'endpoints without a subscription, which get nothing');
    return { eventTypes: [], filter: null, isHeldBack: true };
  }
  const types = subscriptions.flatMap(({ subscription }) =>
    textsOf(jsonOf(subscription.filter_config).event_types),
  );
  const eventTypes = eventTypesOf(types.includes('*') ? [] : types, note);
  const isTransformed = subscriptions.some(({ subscription }) => textOf(subscription.function));
  const filtered = filterOfAll(subscriptions, note);
  if (isTransformed) note('heldBack', 'transformations: Posthorn sends payloads as they are');
  if (subscriptions.some(hasOwnLimits)) {
    note('leftOut', 'rate limits and retries of subscriptions: those of webhooks count');
  }
  return {
    eventTypes: eventTypes ?? [],
    filter: filtered.filter,
    isHeldBack: eventTypes === null || filtered.isHeldBack || isTransformed,
  };
}

function filterOfAll(
  subscriptions: readonly ConvoySubscription[],
  note: Note,
): ReturnType<typeof filterOf> {
  if (!subscriptions.some(hasFilter)) return { filter: null, isHeldBack: false };
  const filter = filterOfSubscriptions(subscriptions);
  if (filter && Object.keys(filter).length === 0) return { filter: null, isHeldBack: false };
  const filtered = filterOf(filter, note);
  if (filtered.filter) {
    note('changed', 'filters: a field that a message lacks meets no condition');
  }
  return filtered;
}

function hasOwnLimits({ subscription }: ConvoySubscription): boolean {
  const rate = jsonOf(subscription.rate_limit_config);
  const retry = jsonOf(subscription.retry_config);
  return (numberOf(rate.count) ?? 0) > 0 || (numberOf(retry.retry_count) ?? 0) > 0;
}

type Authentication = Partial<WebhookFields> & { customHeaders: CustomHeaders };

/** Credentials come over as headers, beside the signature, except those of OAuth 2. */
function authenticationOf(
  endpoint: Json,
  signature: Signature,
  source: string,
  note: Note,
): Authentication {
  const { type, api_key, basic_auth, oauth2 } = jsonOf(endpoint.authentication);
  const { header_name: name, header_value: value } = jsonOf(api_key);
  const signed = signatureOf(endpoint, signature, source, note);
  if (type === 'api_key' && textOf(name) !== undefined) {
    return { ...signed, customHeaders: headersOf({ [String(name)]: value }, source, note) };
  }
  if (type === 'basic_auth') {
    const { username, password } = jsonOf(basic_auth);
    const pair = `${textOf(username) ?? ''}:${textOf(password) ?? ''}`;
    const credential = `Basic ${Buffer.from(pair).toString('base64')}`;
    return { ...signed, customHeaders: headersOf({ Authorization: credential }, source, note) };
  }
  if (type !== 'oauth2') return { ...signed, customHeaders: [] };
  return { ...oauth2Of(jsonOf(oauth2), signed, source, note), customHeaders: [] };
}

/** A receiver of simple signatures in SHA-256 and hex gets the same header, and needs no change. */
function signatureOf(
  endpoint: Json,
  { header, hash, encoding }: Signature,
  source: string,
  note: Note,
): Partial<WebhookFields> {
  const secrets = jsonsOf(endpoint.secrets);
  const active = secrets.find(
    ({ expires_at: end, deleted_at: gone }) => !textOf(end) && !textOf(gone),
  );
  const value = textOf(active?.value);
  if (value === undefined) {
    note('receiver', 'no secret could be read: it takes the new one of the webhook');
    return {};
  }
  if (
    secrets.some(
      (secret) => secret !== active && Date.parse(String(secret.expires_at)) > Date.now(),
    )
  ) {
    note('receiver', 'a rotation under way: the old secret signs no more');
  }
  const hmacSecret = new Secret(source, value);
  const isSame = endpoint.advanced_signatures !== true && hash === 'SHA256' && encoding === 'hex';
  if (isSame) return { authMethod: 'hmac', hmacHeader: header, hmacSecret };
  note(
    'receiver',
    `X-Service-Signature in place of ${header}: the hex HMAC SHA-256 of the body under the same secret`,
    endpoint.advanced_signatures === true ? 'advanced signature' : `${hash} in ${encoding}`,
  );
  return { authMethod: 'hmac', hmacSecret };
}

/** A webhook has one method: with OAuth 2, Standard Webhooks signs it alone. */
function oauth2Of(
  oauth2: Json,
  signed: Partial<WebhookFields>,
  source: string,
  note: Note,
): Partial<WebhookFields> {
  const { url, client_id: clientId, client_secret: clientSecret } = oauth2;
  const [oauth2TokenUrl, oauth2ClientId] = [textOf(url), textOf(clientId)];
  const secret = textOf(clientSecret);
  if (oauth2TokenUrl === undefined || oauth2ClientId === undefined || secret === undefined) {
    note('leftOut', 'OAuth 2 with signed assertions, or without a readable secret');
    return signed;
  }
  note(
    'receiver',
    'OAuth 2: it verifies Standard Webhooks with the new secret, in place of X-Convoy-Signature',
  );
  return {
    authMethod: 'oauth2',
    oauth2TokenUrl,
    oauth2ClientId,
    oauth2ClientSecret: new Secret(source, secret),
    oauth2Scope: textOf(textOf(oauth2.scope)?.trim().replaceAll(/\s+/g, ' ')) ?? null,
    oauth2Audience: textOf(oauth2.audience) ?? null,
  };
}

function tlsOf(certificate: Json, source: string, note: Note): Pick<WebhookFields, 'tls'> {
  const { client_cert: pem, client_key: key } = certificate;
  const [certificatePem, keyPem] = [textOf(pem), textOf(key)];
  if (certificatePem === undefined) return {};
  if (keyPem === undefined || !keyPem.includes('PRIVATE KEY')) {
    note('byHand', 'client certificates whose keys cannot be read');
    return {};
  }
  return { tls: { certificate: certificatePem, key: new Secret(source, keyPem) } };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { h: 3_600, m: 60, s: 1, ms: 0.001 };

/** Returns seconds from a number of them, or from a duration as Go writes it, such as `1m0s`. */
export function secondsOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  const parts = [...(textOf(value) ?? '').matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)];
  if (parts.length === 0) return undefined;
  return parts.reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (UNIT_SECONDS[unit] ?? 0),
    0,
  );
}
