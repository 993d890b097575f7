import type { Capability, Scope } from '@posthorn/domain/access.ts';
import type { AuditAction, AuditedFields, AuditTargetKind } from '@posthorn/domain/audit.ts';
import type { Role } from '@posthorn/domain/people.ts';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type { Changed } from '@posthorn/platform/mongo/company-documents.ts';
import { KEPT_MS } from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import { z } from 'zod';
import type { Problem } from '../api-error.ts';
import type { ErrorCode, SpecificError } from '../error-codes.ts';
import type { Caller } from '../keys/rights.ts';
import type { Frame, Pages } from './send-json.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { UidKind } from '../projects/uids.ts';

export interface Body<T> {
  value: T;
  /** Returns those of the fields that another schema has. Throws ApiError 400 when they do not fit it. */
  as: <Schema extends z.ZodObject>(schema: Schema) => z.infer<Schema>;
  /** Returns the text of a field as the client wrote it; undefined when it is absent. */
  textOf: (name: string) => string | undefined;
  /** The whole body as it was received. */
  bytes: Buffer;
}

/** The origin of new objects of a request. A repeat with the same `Idempotency-Key` has the same origin. */
export interface Origin {
  /** Returns the id of what the request creates. */
  newId: (prefix: IdPrefix) => string;
  /** Returns 32 random bytes for a secret. */
  seed: () => Promise<Buffer>;
}

export interface ApiRequest<Fields, Query> extends Origin {
  caller: Caller;
  /** Resolves when the audit log has the request. It has before the handler is called, unless that `readsFirst`. */
  isRecorded: Promise<unknown>;
  requestId: string;
  /** Where the client reached this gateway, such as `https://hooks.example.com`. */
  baseUrl: () => string;
  params: Readonly<Record<string, string>>;
  query: Query;
  body: Body<Fields>;
  header: (name: string) => string | undefined;
  /** Counts bytes that are about to be read for this request. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
  /** A handler awaits it before each piece of work that takes milliseconds of the process. */
  nextSlice: NextSlice;
  /** Problems outside the body, of a request whose handler reads the body. */
  problems: readonly Problem[];
  /**
   * Counts the request as so many: for the rate limits of its company, and as messages that are refused with it. Throws
   * ApiError 429 when that is too many.
   */
  countAs: (messages: number) => void;
  /** Returns the ids in place of uids. Throws ApiError 404 for what is not in the app of the caller. */
  identify: <Named extends Readonly<Record<string, string>>>(ids: Named) => Promise<Named>;
  /** Is aborted while there is time to respond with what is known, before the request gets 503. */
  deadline: () => AbortSignal;
}

/** A request whose body and query fit the schemas of its route, which `route` gives the types of the handler. */
export type CheckedRequest = ApiRequest<Record<string, unknown>, Record<string, unknown>>;

/** The part of a response that a handler adds to the declaration of its route. */
export interface ApiResponse {
  data?: unknown;
  /** Instead of `data`: a list that may be too large to be in memory at once. */
  pages?: Pages;
  /** The object that `pages` are fields of; without it, `data` is a list of them. */
  frame?: Frame;
  /** Start of the next page, null on the last one. Only for lists with a cursor. */
  nextCursor?: string | null;
  headers?: Record<string, string>;
  /** True for a read whose secrets were left out: it is not recorded in the audit log. */
  hidesSecrets?: boolean;
  /** Of an upsert that has created something. */
  isCreated?: boolean;
  /** The results of the messages of a request that has several, for the metrics. */
  messages?: MessageTally;
  /** The change for the audit log, with real values, never sent. When it is left out, the fields of the request count. */
  changed?: Changed<AuditedFields>;
}

/** How many messages were accepted, and refused by error code. Repeats are in neither. */
export interface MessageTally {
  accepted: number;
  refused: ReadonlyMap<ErrorCode, number>;
}

/** The success response of a route, as it is sent and as the OpenAPI document describes it. */
interface ResponseSpec {
  status: 200 | 201 | 202;
  /** The `message` of the envelope, for people. */
  message: string;
  /** Left out for deletes (docs/contract.md C2.1). */
  data?: z.ZodType;
  hasCursor?: boolean;
}

/** How the audit log records a route (docs/contract.md C17). */
export interface AuditSpec {
  action: AuditAction;
  /** The id of the target is in the path, or in the response. */
  target: AuditTargetKind;
  /** For a read: only keys with this scope see secrets, and only their reads are recorded. */
  secretsFor?: Scope;
  /** Whether a request with these fields changes nothing, and is not recorded. */
  changesNothing?: (fields: Readonly<Record<string, unknown>>) => boolean;
}

/** An optional header that the handler reads. */
interface RouteHeader {
  name: string;
  description: string;
  schema: z.ZodType;
}

/** Of a route that creates something, which takes an `Idempotency-Key` (docs/contract.md C8.6). */
export interface Creation {
  /**
   * Returns the response for what an earlier request with the same origin created, whose process ended before it stored
   * its response; null when it created nothing. Left out where the handler itself may be repeated.
   */
  find?: (request: FindRequest) => Promise<ApiResponse | null>;
  /** Fields of `data` that only the first response shows: null when it is sent again. */
  shownOnce?: readonly string[];
  /** The handler awaits `isRecorded` between its reads and its first change. */
  readsFirst?: boolean;
  /** It shows the secrets of a webhook, so that a repeat is recorded as a read of them. */
  showsSecrets?: boolean;
}

type FindRequest = Pick<CheckedRequest, 'caller' | 'params' | 'newId' | 'nextSlice'>;

/** A queue of requests that is limited for each company. */
interface RequestQueue {
  /** Returns false when a request with a body of this length would be refused; then no work is done for it. */
  hasRoom: (companyId: string, bytes: number) => boolean;
}

type Method = 'get' | 'post' | 'put' | 'delete';

interface RouteSpec {
  /** Verb and resource, such as `listApps`: the name of the method in generated clients. Never changed. */
  operationId: string;
  method: Method;
  /** Path without a version prefix. Served with and without `/api/v1`, unless `versionedOnly`. */
  path: string;
  versionedOnly?: boolean;
  /** The contract's own address has the prefix (docs/contract.md C1.2). */
  isVersionedInContract?: boolean;
  /** The scope that the API key must have; left out for a route that every key may use. */
  scope?: Scope;
  /**
   * The capability that a visitor of the portal must have, or one of several; without it, the route does not exist for
   * visitors.
   */
  portal?: Capability | readonly Capability[];
  /** The role of a person (docs/contract.md C26.2) that is enough where the scope is not. */
  people?: Role;
  /** Refuses keys of one app, even when everything that the request names is in that app. */
  isForCompanyOnly?: boolean;
  /** The queue that its requests wait in; without one, a company may have only so many under way. */
  queue?: RequestQueue;
  /** Every route that changes something has it, and every one that shows secrets. Messages are history themselves. */
  audit?: AuditSpec;
  tag: string;
  summary: string;
  description?: string;
  /** The contract requires the `companyid` header here (docs/contract.md C4.3). */
  needsCompanyId?: boolean;
  /** The response to a request without any credentials: the same data for everyone, which caches may keep. */
  forEveryone?: { cacheControl: string; respond: () => ApiResponse };
  headers?: readonly RouteHeader[];
  creation?: Creation;
  /** A request without a body counts as `{}`. */
  isBodyOptional?: boolean;
  /** For a body that is larger than others and one object. */
  maxBodyBytes?: number;
  /** The handler reads the body, which may have so many bytes, in slices: `body` has `bytes` only. */
  ownBody?: { maxBytes: number };
  response: ResponseSpec;
  errors?: readonly SpecificError[];
  /** The kind of what the query parameter `ids` lists. */
  idsOf?: UidKind;
  /** Returns the problems of the fields that only the stored document shows. The response reports them with all others. */
  problemsOf?: (request: RawRequest) => Promise<Problem[]>;
}

/** A request whose fields were parsed but not validated. */
interface RawRequest {
  caller: Caller;
  params: Readonly<Record<string, string>>;
  fields: Readonly<Record<string, unknown>>;
}

/** The effect of `?upsert=true`: an update creates the object that its path names by a free uid, or by its own name. */
export interface Upsert {
  /** The last parameter of the path is the name of the object, which has no uid. */
  isByName?: boolean;
  /** That of the creation. */
  body: z.ZodObject;
  /** Refuses keys of one app, whatever has the uid, so that they learn of no uid of others. */
  isForCompanyOnly?: boolean;
  action: AuditAction;
  response: ResponseSpec;
  errors: readonly SpecificError[];
  /** Takes the uid, or the name. */
  handle: (request: CheckedRequest, uid: string) => Promise<ApiResponse>;
}

export interface Route extends RouteSpec {
  query: z.ZodObject;
  body: z.ZodObject | null;
  upsert?: Upsert;
  handle: (request: CheckedRequest) => Promise<ApiResponse>;
}

/** Showing secrets of webhooks (docs/contract.md C17.6). */
export const SECRETS_READ: AuditSpec = {
  action: 'webhook.secrets_read',
  target: 'webhook',
  secretsFor: 'webhooks:write',
};

/** The schema of a request without query parameters or without body fields. */
export const NO_FIELDS = z.object({});

type Infer<Schema> = Schema extends z.ZodType ? z.infer<Schema> : Record<string, never>;

/** Gives the handler's body and query the types of the schemas that validate them. */
export function route<
  Fields extends z.ZodObject | undefined = undefined,
  Query extends z.ZodObject | undefined = undefined,
>(
  spec: RouteSpec & {
    query?: Query;
    body?: Fields;
    upsert?: Upsert;
    handle: (request: ApiRequest<Infer<Fields>, Infer<Query>>) => Promise<ApiResponse>;
  },
): Route {
  const { creation, headers = [], errors = [], query = NO_FIELDS, body = null } = spec;
  // The pipeline checks each request with the schemas whose types the handler has.
  const handle = spec.handle as Route['handle'];
  if (!creation) return { ...spec, query, body, handle };
  const withKey = { headers: [...headers, IDEMPOTENCY_KEY], errors: [...errors, ...KEY_ERRORS] };
  return { ...spec, ...withKey, query, body, handle };
}

export const idempotencyKey = z
  .string()
  .regex(/^[\x20-\x7e]{1,255}$/, 'must be 1 to 255 printable ASCII characters');

export const IDEMPOTENCY_KEY: RouteHeader = {
  name: 'Idempotency-Key',
  description: `Makes the request safe to repeat for ${KEPT_MS / 3_600_000} hours: a repeat with the same body gets the first response again, with \`Idempotency-Replayed: true\``,
  schema: idempotencyKey.meta({ example: 'order-17-paid' }),
};

const KEY_ERRORS = ['idempotency_key_running', 'idempotency_key_reused'] as const;

/** Returns the methods that a route answers to: every `PUT` is partial, so `PATCH` is the same (docs/contract.md C1.8). */
export function methodsOf({ method }: Pick<RouteSpec, 'method'>): (Method | 'patch')[] {
  return method === 'put' ? [method, 'patch'] : [method];
}

/** The same for the handler of an upsert. */
export function upsert<Fields extends z.ZodObject>(
  spec: Omit<Upsert, 'handle'> & {
    body: Fields;
    handle: (
      request: ApiRequest<Infer<Fields>, Record<string, unknown>>,
      uid: string,
    ) => Promise<ApiResponse>;
  },
): Upsert {
  return { ...spec, handle: spec.handle as Upsert['handle'] };
}

type Addressed = Pick<RouteSpec, 'path' | 'versionedOnly' | 'isVersionedInContract'>;

/** Returns the paths at which a route is mounted, the contract's own (docs/contract.md C1.2) first. */
export function pathsOf({
  path,
  versionedOnly,
  isVersionedInContract,
}: Addressed): [string, ...string[]] {
  const versioned = `/api/v1${path}`;
  if (versionedOnly) return [versioned];
  return isVersionedInContract ? [versioned, path] : [path, versioned];
}
