import { z } from 'zod';
import type { Problem } from './api-error.ts';
import type { Body } from './read-body.ts';

/** Who asks: the owner of the API key. Every query carries this company. */
export interface Caller {
  companyId: string;
}

export interface ApiRequest<Fields, Query> {
  caller: Caller;
  requestId: string;
  params: Readonly<Record<string, string>>;
  query: Query;
  body: Body<Fields>;
  header: (name: string) => string | undefined;
}

/** What the handler adds to the answer that its route declares. */
export interface ApiAnswer {
  data?: unknown;
  /** Where the next page starts, null at the end; only for lists with cursors. */
  nextCursor?: string | null;
  headers?: Record<string, string>;
}

/** The success answer of a route: what is sent, and what the API document says of it. */
export interface AnswerSpec {
  status: 200 | 201 | 202;
  /** The envelope's human-readable text. */
  message: string;
  /** Left out for deletes, as the contract says. */
  data?: z.ZodType;
  hasCursor?: boolean;
}

/** Failures that only some routes have, by their code (docs/decisions/0004-api-errors.md). */
export type SpecificError =
  | 'not_found'
  | 'delivery_pending'
  | 'resend_running'
  | 'webhook_deleted'
  | 'webhook_disabled'
  | 'idempotency_key_running'
  | 'idempotency_key_reused';

/** An optional header that the handler reads. */
export interface RouteHeader {
  name: string;
  description: string;
  schema: z.ZodType;
}

type Method = 'get' | 'post' | 'put' | 'delete';

interface Endpoint {
  method: Method;
  /** Path without a version prefix; it answers with and without `/api/v1` unless `versionedOnly`. */
  path: string;
  versionedOnly?: boolean;
  /** The contract's own address has the prefix (spec, Versioning). */
  isVersionedInContract?: boolean;
  tag: string;
  summary: string;
  description?: string;
  /** The contract requires the `companyid` header here (spec, Calling the API). */
  needsCompanyId?: boolean;
  headers?: readonly RouteHeader[];
  /** A request without any body counts as `{}`. */
  isBodyOptional?: boolean;
  answer: AnswerSpec;
  errors?: readonly SpecificError[];
  /** What is wrong with the fields in the light of what is stored; told together with all the rest. */
  problemsOf?: (request: RawRequest) => Promise<Problem[]>;
}

/** A request whose fields have been read, but not checked. */
export interface RawRequest {
  caller: Caller;
  params: Readonly<Record<string, string>>;
  fields: Readonly<Record<string, unknown>>;
}

export interface Route extends Endpoint {
  query: z.ZodObject;
  body: z.ZodObject | null;
  handle: (request: ApiRequest<never, never>) => Promise<ApiAnswer>;
}

/** For requests without query parameters, or whose body has no fields. */
export const NO_FIELDS = z.object({});

type Infer<Schema> = Schema extends z.ZodType ? z.infer<Schema> : Record<string, never>;

/** Ties the types of the handler's body and query to the schemas that check them. */
export function route<
  Fields extends z.ZodObject | undefined = undefined,
  Query extends z.ZodObject | undefined = undefined,
>(
  spec: Endpoint & {
    query?: Query;
    body?: Fields;
    handle: (request: ApiRequest<Infer<Fields>, Infer<Query>>) => Promise<ApiAnswer>;
  },
): Route {
  return { ...spec, query: spec.query ?? NO_FIELDS, body: spec.body ?? null };
}

export function pathsOf({ path, versionedOnly }: Endpoint): string[] {
  return versionedOnly ? [`/api/v1${path}`] : [path, `/api/v1${path}`];
}
