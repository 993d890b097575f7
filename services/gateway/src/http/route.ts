import type { z } from 'zod';
import type { Body } from './read-body.ts';

/** Who asks: the owner of the API key. Every query carries this company. */
export interface Caller {
  companyId: string;
}

export interface ApiRequest<T> {
  caller: Caller;
  requestId: string;
  params: Readonly<Record<string, string>>;
  body: Body<T>;
}

export interface ApiAnswer {
  status: 200 | 201 | 202;
  message: string;
  /** Left out of the envelope when absent, as the contract says for deletes. */
  data?: unknown;
}

interface Endpoint {
  /** Path without a version prefix; it answers with and without `/api/v1` unless `versionedOnly`. */
  path: string;
  versionedOnly?: boolean;
}

export interface BodylessRoute extends Endpoint {
  method: 'get' | 'delete';
  handle: (request: Omit<ApiRequest<never>, 'body'>) => Promise<ApiAnswer>;
}

export interface BodyRoute extends Endpoint {
  method: 'post' | 'put';
  body: z.ZodObject;
  handle: (request: ApiRequest<never>) => Promise<ApiAnswer>;
}

export type Route = BodylessRoute | BodyRoute;

/** Ties the type of the handler's body to the schema that checks it. */
export function bodyRoute<Schema extends z.ZodObject>(
  route: Endpoint & {
    method: 'post' | 'put';
    body: Schema;
    handle: (request: ApiRequest<z.infer<Schema>>) => Promise<ApiAnswer>;
  },
): BodyRoute {
  return route;
}

export function pathsOf({ path, versionedOnly }: Endpoint): string[] {
  return versionedOnly ? [`/api/v1${path}`] : [path, `/api/v1${path}`];
}
