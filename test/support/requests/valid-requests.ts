import fc from 'fast-check';
import type { CompileSchema, JsonSchema, Operation, Parameter } from '../api/api-document.ts';
import { isIdField, ODD_IDS, unknownId, type Ids, type KnownIds } from './known-ids.ts';
import { selfSigned } from '../receivers/self-signed.ts';
import { createValues, type ValueOf } from './schema-values.ts';

/** A request before it is encoded. */
export interface Draft {
  operation: Operation;
  pathIds: Record<string, string>;
  query: [string, string][];
  headers: Record<string, string>;
  /** Null for no body. */
  body: Record<string, unknown> | null;
  /** Whether every id in it is of the caller's company. */
  usesOwnIds: boolean;
}

export interface RequestDeps {
  named: Record<string, JsonSchema>;
  compile: CompileSchema;
  ids: KnownIds;
  apiKey: string;
  companyId: string;
  /** The URLs of generated webhooks begin with this. */
  receiverUrl: string;
}

export type DraftOf = (operation: Operation) => fc.Arbitrary<Draft>;

/** Generates requests that the document allows, for existing and unknown resources. */
export function createDrafts(deps: RequestDeps): DraftOf {
  const { apiKey, companyId } = deps;
  return (operation) => {
    const { parameters, body } = operation;
    const valueOf = valuesFor(deps, operation);
    const of = (place: Parameter['in']): Parameter[] =>
      parameters.filter((each) => each.in === place);
    return fc
      .record({
        pathIds: fc.record(
          Object.fromEntries(of('path').map(({ name }) => [name, idOf(deps, operation, name)])),
        ),
        query: someOf(of('query'), valueOf),
        headers: someOf(
          of('header').filter(({ name }) => name !== 'companyid'),
          valueOf,
        ),
        company: operation.needsCompanyId ? fc.constant(true) : fc.boolean(),
        body: bodyOf(operation, valueOf),
      })
      .map(({ pathIds, query, headers, company, body: fields }) => ({
        operation,
        pathIds,
        body: fields,
        query: Object.entries(fitQuery(deps.ids, operation, query)).map(
          ([name, value]): [string, string] => [name, String(value)],
        ),
        headers: {
          ...sendable(headers),
          'x-api-key': apiKey,
          ...(company && { companyid: companyId }),
          ...(body && fields && { 'content-type': 'application/json' }),
        },
        usesOwnIds: usesOwnIds(deps.ids, { ...pathIds, ...query, ...fields }),
      }));
  };
}

/** Adds the content type, which a draft without its optional body does not have. */
export function withJsonType(draft: Draft): Draft {
  return { ...draft, headers: { ...draft.headers, 'content-type': 'application/json' } };
}

function someOf(
  parameters: readonly Parameter[],
  valueOf: ValueOf,
): fc.Arbitrary<Record<string, unknown>> {
  const model = parameters.map(({ name, schema }) => [name, valueOf(schema, name)] as const);
  const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name);
  return fc.record(Object.fromEntries(model), { requiredKeys });
}

/** Generates ids; requests that cannot be repeated for the same effect get ids that no other one needs. */
function idOf(
  { ids }: RequestDeps,
  { method, path }: Operation,
  name: string,
): fc.Arbitrary<string> {
  if (!isIdField(name)) return fc.constant('x');
  const isSkip = path.endsWith('/ordering-keys/skip');
  if (isSkip && (name === 'webhookId' || name === 'deliveryId')) {
    return fc.oneof(
      { arbitrary: fc.constant(ids.blocked[name]), weight: 4 },
      { arbitrary: unknownId(name), weight: 1 },
    );
  }
  // Those that are deleted are of the project that is kept.
  if (name === 'projectId' && path.includes('/event-types/')) {
    return fc.constantFrom(...ids.own.projectId);
  }
  const isFinal = method === 'DELETE' || /\/(?:erase-payload|cancel)$/.test(path);
  const all = isFinal ? ids.disposable[name] : ids.own[name];
  // Nothing is replayed to the last one, which is global.
  const own = path.includes('/replay-missing') ? all.slice(0, 2) : all;
  return fc.oneof(
    { arbitrary: fc.constantFrom(...own), weight: 8 },
    { arbitrary: unknownId(name), weight: 1 },
    { arbitrary: fc.constantFrom(...ids.foreign[name], ...ODD_IDS), weight: 1 },
  );
}

/** Of few event types, which requests make and change again and again. */
const DOCUMENT = fc
  .dictionary(fc.constantFrom('order.paid', 'order/sent'), fc.string({ unit: 'grapheme' }))
  .map((descriptions) => ({
    openapi: '3.1.0',
    webhooks: Object.fromEntries(
      Object.entries(descriptions).map(([name, description]) => [name, { post: { description } }]),
    ),
  }));

/** Each example meets each schema. */
const SCHEMA = fc.constantFrom<unknown>(null, { type: 'object' });
const EXAMPLE = fc.constantFrom<unknown>(null, {}, { order: 17 });

const { cert, key } = selfSigned('client.example.com');
const TLS = fc.constantFrom<unknown>(null, { certificate: cert, key }, { ca: cert });

/** The grammar of conditions is in the contract (C27). */
const FILTER = fc.constantFrom<unknown>(
  { payload: { amount: { $gte: 100 } } },
  { eventType: { $startsWith: 'order.' }, $not: { tags: 'test' } },
);

function valuesFor(deps: RequestDeps, operation: Operation): ValueOf {
  const { named, compile, receiverUrl } = deps;
  return createValues({
    named,
    compile,
    fieldValues(field) {
      if (isIdField(field)) return idOf(deps, { ...operation, method: 'GET' }, field);
      if (field === 'url' || field === 'oauth2TokenUrl') {
        return fc.webPath({ size: 'small' }).map((path) => receiverUrl + encodeURI(path));
      }
      if (field === 'tls') return TLS;
      if (field === 'filter') return FILTER;
      if (field === 'document') return DOCUMENT;
      if (field === 'orderingKey' && operation.path.endsWith('/skip')) {
        return fc.constant(deps.ids.blocked.orderingKey);
      }
      if (field === 'eventType' && operation.path.endsWith('/test')) return fc.constant(null);
      if (field === 'archived') return fc.constant(false);
      if (field === 'archiveMissing') return fc.constant(false);
      if (field === 'schema') return SCHEMA;
      if (field === 'example') return EXAMPLE;
      // With another policy, messages and webhooks of other requests would be refused.
      if (field === 'eventTypePolicy') return fc.constant('open');
      if (field === 'X-Request-Id')
        return fc.stringMatching(/^[A-Za-z0-9._-]{8,128}$|^[ -~]{1,40}$/);
      return null;
    },
  });
}

function bodyOf(
  { body, path }: Operation,
  valueOf: ValueOf,
): fc.Arbitrary<Record<string, unknown> | null> {
  if (!body) return fc.constant(null);
  const fields = (valueOf(plainBodyOf(body.schema)) as fc.Arbitrary<Record<string, unknown>>).map(
    (made) =>
      /\/deliveries\/(cancel|resend)$/.test(path) ? narrowed(made) : fitToUnwrittenRules(made),
  );
  return body.isRequired ? fields : fc.option(fields, { freq: 3 });
}

/** The body of an update with `upsert=true` is another one, and `fitQuery` leaves that out. */
export function plainBodyOf(schema: JsonSchema): JsonSchema {
  const [plain = schema] = (schema.anyOf ?? []) as JsonSchema[];
  return plain;
}

const IN_AN_HOUR = new Date(Date.now() + 3_600_000).toISOString();

/** Makes a body follow the rules that JSON Schema cannot express (docs/decisions/0011-openapi-from-zod.md). */
function fitToUnwrittenRules(body: Record<string, unknown>): Record<string, unknown> {
  const { customHeaders, since, until, hmacHeader, apiKeyHeader, theme } = body;
  const taken = new Set([hmacHeader, apiKeyHeader, 'X-Service-Signature'].map(lower));
  const distinct = (customHeaders as { key: string }[] | undefined)?.filter(({ key }) => {
    const isNew = !taken.has(lower(key));
    taken.add(lower(key));
    return isNew;
  });
  const span = [since, until].sort((a, b) => Date.parse(String(a)) - Date.parse(String(b)));
  return {
    ...body,
    ...(distinct && { customHeaders: distinct }),
    ...(typeof theme === 'object' && theme !== null && { theme: withoutForeignLogo(theme) }),
    ...(typeof until === 'string' && { since: span[0], until: span[1] }),
    // The end of a hold, which is in the future.
    ...(since === undefined && typeof until === 'string' && { since, until: IN_AN_HOUR }),
    ...('payload' in body && fittingTimes(body)),
    // Deliveries are cancelled that were created in the past.
    ...(typeof body.createdBefore === 'string' && { createdBefore: '2026-01-01T00:00:00Z' }),
  };
}

const HOUR_MS = 3_600_000;

/** The times of a message are in the future, in order, and not beyond the 30 days for which messages are kept. */
function fittingTimes({ deliverAt, expiresAt, retentionDays }: Record<string, unknown>): object {
  const inHours = (hours: number): string => new Date(Date.now() + hours * HOUR_MS).toISOString();
  return {
    ...(typeof deliverAt === 'string' && { deliverAt: inHours(1) }),
    ...(typeof expiresAt === 'string' && { expiresAt: inHours(2) }),
    ...(typeof retentionDays === 'number' && { retentionDays: 1 + (retentionDays % 30) }),
  };
}

interface Theme {
  logoUrl?: string;
}

/** A logo is at an origin of the portal settings, or comes with the theme. */
function withoutForeignLogo({ logoUrl, ...theme }: Theme): Theme {
  return logoUrl?.startsWith('data:') === true ? { ...theme, logoUrl } : theme;
}

type Query = Record<string, unknown>;

/** The same for the queries of the statistics and of the overview. */
function fitQuery({ own }: KnownIds, { path }: Operation, { upsert, ...query }: Query): Query {
  if (upsert !== undefined) return { upsert: 'false', ...query };
  if (path.endsWith('/webhook-messages')) return fitStatus(query);
  if (path.endsWith('/deliveries')) return fitFilters(query);
  if (/\/deliveries\/(cancel|resend)\/estimate$/.test(path)) return narrowed(query);
  if (path.endsWith('/replay-missing/estimate')) return fitSpan(query);
  // A cursor is of one kind of state, and a version exists once a schema has changed.
  if (path.endsWith('/ordering-keys')) return without(query, 'cursor');
  if (path.includes('/event-types/')) return without(query, 'version');
  if (path.endsWith('/find')) return { id: ownIdOr(String(query.id), own) };
  if (!path.endsWith('/stats') && !path.endsWith('/overview')) return query;
  const { appId, ...others } = fitSpan(query);
  return { ...others, ...(appId !== undefined && others.webhookId === undefined && { appId }) };
}

function without(query: Query, name: string): Query {
  return Object.fromEntries(Object.entries(query).filter(([key]) => key !== name));
}

/** A reason and a kind of waiting each belong to some of the statuses, and to none together. */
function fitFilters({ status, waiting, ...others }: Query): Query {
  if (others.reason !== undefined) return others;
  if (waiting !== undefined) return { waiting, ...others };
  return { ...(status !== undefined && { status }), ...others };
}

/** What is done with all that a filter selects is of some statuses, and needs a field besides the status. */
function narrowed({
  status: _status,
  waiting: _waiting,
  reason: _reason,
  ...others
}: Query): Query {
  return fitSpan({ ...others, eventType: others.eventType ?? 'order.paid' });
}

function fitSpan({ since, until, ...others }: Query): Query {
  const span = [since, until].sort((a, b) => Date.parse(String(a)) - Date.parse(String(b)));
  const [first, last] = since === undefined || until === undefined ? [since, until] : span;
  return {
    ...others,
    ...(first !== undefined && { since: first }),
    ...(last !== undefined && { until: last }),
  };
}

function fitStatus({ deliveryStatus, ...others }: Query): Query {
  if (deliveryStatus === undefined || others.webhookId === undefined) return others;
  return { ...others, deliveryStatus };
}

/** The kinds of ids that are found. Nothing finds an event type, a person, a link or an invitation by its id alone. */
const FOUND = ['projectId', 'appId', 'webhookId', 'messageId', 'deliveryId', 'resendId'] as const;

/** Three of four texts become an id, so that no run is without any. */
function ownIdOr(text: string, own: Ids): string {
  const ids = FOUND.flatMap((field) => own[field]);
  const sum = Buffer.from(text).reduce((total, byte) => total + byte, 0);
  return sum % 4 === 0 ? text : (ids[sum % ids.length] ?? text);
}

const lower = (text: unknown): string => String(text).toLowerCase();

/** Trims the values: HTTP removes the spaces around a header's value, and the rest may be another value. */
function sendable(headers: Record<string, unknown>): Record<string, string> {
  const trimmed = Object.entries(headers).map(([name, value]) => [name, String(value).trim()]);
  return Object.fromEntries(trimmed.filter(([, value]) => value !== '')) as Record<string, string>;
}

function usesOwnIds(ids: KnownIds, fields: Record<string, unknown>): boolean {
  const all = Object.values(ids.own).flat();
  return Object.entries(fields).every(([name, value]) => {
    if (name === 'id') return all.includes(String(value));
    return !isIdField(name) || ids.own[name].includes(String(value));
  });
}
