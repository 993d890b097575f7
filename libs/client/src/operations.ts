import { ApiPromise, List, type Position } from './results.ts';
import type { paths } from './schema.ts';
import type {
  Answer,
  ApiRequest,
  CreateOptions,
  Envelope,
  RequestOptions,
  Transport,
} from './transport.ts';

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

type OperationOf<M extends Method, P extends keyof paths> = paths[P][Lowercase<M>];

/** The addresses that have the method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: OperationOf<M, P> extends object ? P : never;
}[keyof paths];

type EnvelopeOf<O> = O extends { responses: infer R }
  ? {
      [S in keyof R]: R[S] extends { content: { 'application/json': infer E } } ? E : never;
    }[keyof R]
  : never;

/** The `data` of the success; undefined for an operation without. */
export type DataOf<M extends Method, P extends PathOf<M>> =
  EnvelopeOf<OperationOf<M, P>> extends { data: infer D } ? D : undefined;

type ItemOf<P extends PathOf<'GET'>> = DataOf<'GET', P> extends (infer I)[] ? I : never;

export type QueryOf<M extends Method, P extends PathOf<M>> =
  OperationOf<M, P> extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;

export type BodyOf<M extends Method, P extends PathOf<M>> =
  OperationOf<M, P> extends { requestBody?: infer B }
    ? NonNullable<B> extends { content: { 'application/json': infer J } }
      ? J
      : never
    : never;

type Query = Readonly<
  Record<string, string | number | boolean | readonly string[] | null | undefined>
>;

/** A request of any kind. */
export interface RawRequest extends CreateOptions {
  /** Is put behind that of the path. Lists of ids are arrays; null and undefined are left out. */
  query?: Query | undefined;
  /** An object, or the JSON text of one, which is sent byte for byte. */
  body?: object | string | undefined;
}

type Ids = string | readonly string[];

interface CallOf<M extends Method, P extends PathOf<M>> {
  /** Fills the parameter of the address, or several in their order. */
  id?: Ids | undefined;
  query?: Loose<QueryOf<M, P>> | undefined;
  body?: BodyOf<M, P> | undefined;
  options?: CreateOptions | undefined;
}

type CreationOf<P extends PathOf<'POST'>> = Omit<CallOf<'POST', P>, 'body' | 'query'> & {
  body?: BodyOf<'POST', P> | (() => string) | undefined;
};

/** Lists of ids are text in the address. */
type Loose<Q> = {
  [K in keyof Q]?: Q[K] | (K extends 'ids' ? readonly string[] : never) | undefined;
};

/**
 * Calls the operations of the API by method and address, which the types of the routes check together with query, body
 * and result.
 */
export class Operations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The signal of every call that has none of its own. */
  get signal(): AbortSignal | undefined {
    return this.#transport.signal;
  }

  call<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    { id, query, body, options = {} }: CallOf<M, P> = {},
  ): ApiPromise<DataOf<M, P>> {
    return this.#start(() => ({
      method,
      path: addressOf(path, id, query),
      body: body === undefined ? undefined : JSON.stringify(body),
      idempotencyKey: null,
      options,
    }));
  }

  /** How often a call with these options is repeated. */
  maxRetries(options: RequestOptions): number {
    return this.#transport.maxRetries(options);
  }

  /** A POST that the API carries out once for each `Idempotency-Key`. A function returns a body that is JSON already. */
  create<P extends PathOf<'POST'>>(
    path: P,
    { id, body, options = {} }: CreationOf<P>,
  ): ApiPromise<DataOf<'POST', P>> {
    return this.#start(() => ({
      method: 'POST',
      path: addressOf(path, id),
      // Once for all attempts: a repeat must be the same byte for byte (docs/contract.md C8.2).
      body: typeof body === 'function' ? body() : JSON.stringify(body),
      idempotencyKey: options.idempotencyKey ?? crypto.randomUUID(),
      options,
    }));
  }

  /** Any operation of the API at this address, also one that this version does not know. */
  request<T>(
    method: Method,
    path: string,
    { query, body, ...options }: RawRequest = {},
  ): ApiPromise<T> {
    return this.#start(() => {
      if (!METHODS.includes(method)) throw new TypeError(`Expected ${METHODS.join(', ')}`);
      if (method === 'GET' && body !== undefined) throw new TypeError('GET has no body');
      return {
        method,
        path: withQuery(parsePath(path), query),
        body: typeof body === 'object' ? JSON.stringify(body) : body,
        idempotencyKey: options.idempotencyKey ?? null,
        options,
      };
    });
  }

  /** A list that the API continues by a cursor. */
  byCursor<P extends PathOf<'GET'>>(
    path: P,
    { id, query, options }: CallOf<'GET', P>,
  ): List<ItemOf<P>> {
    const { cursor } = (query ?? {}) as { cursor?: string | undefined };
    return new List(this.#pagesOf(path, { id, query, options }), { kind: 'cursor', cursor });
  }

  /** A list that the API continues behind a number of entries. */
  bySkip<P extends PathOf<'GET'>>(
    path: P,
    { id, query, options }: CallOf<'GET', P>,
  ): List<ItemOf<P>> {
    const { skip = 0, limit = SKIP_LIMIT } = (query ?? {}) as { skip?: number; limit?: number };
    const pages = this.#pagesOf(path, { id, query: { ...query, limit }, options });
    return new List(pages, { kind: 'skip', skip, limit });
  }

  /** A list that the API returns at once. */
  whole<P extends PathOf<'GET'>>(path: P, { query, options }: CallOf<'GET', P>): List<ItemOf<P>> {
    return new List(this.#pagesOf(path, { query, options }), { kind: 'whole' });
  }

  #pagesOf(
    path: string,
    {
      id,
      query,
      options = {},
    }: { id?: Ids | undefined; query?: object | undefined; options?: CreateOptions | undefined },
  ): (position: Position) => Promise<Answer<Envelope>> {
    // Async: a wrong id rejects.
    return async (position) =>
      this.#transport.send({
        method: 'GET',
        path: addressOf(path, id, { ...query, ...position }),
        body: undefined,
        idempotencyKey: null,
        options,
      });
  }

  /** Wrong arguments reject the promise too. Arguments are read at once: callers may change them afterwards. */
  #start<T>(build: () => ApiRequest): ApiPromise<T> {
    const send = async (): Promise<Answer<T>> => {
      const { data: envelope, ...rest } = await this.#transport.send(build());
      const { data, nextCursor } = envelope;
      return { ...rest, data: data as T, ...(nextCursor !== undefined && { nextCursor }) };
    };
    return new ApiPromise(send());
  }
}

/** The most that every list with `skip` allows. With a known limit, a page that is not full is the last one. */
const SKIP_LIMIT = 100;

function addressOf(template: string, id: Ids | undefined, query: object = {}): string {
  const ids = [id].flat();
  let used = 0;
  return withQuery(
    template.replaceAll(/\{\w+\}/g, () => encodeId(ids[used++])),
    query,
  );
}

function withQuery(path: string, query: object = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Query)) {
    if (value !== undefined && value !== null) given.append(name, String(value));
  }
  if (given.size === 0) return path;
  return `${path}${path.includes('?') ? '&' : '?'}${given.toString()}`;
}

/**
 * Returns the part of a path below /api/v1. Throws when it would lead out of the API, to whatever else is at its host: by
 * steps up, or by characters that the parser of addresses leaves out or turns into others.
 */
function parsePath(path: string): string {
  const below = path.replace(/^\/api\/v1(?=\/)/, '');
  const [steps = ''] = below.split('?', 1);
  const isUp = steps.split('/').some((step) => /^(\.|%2e){1,2}$/i.test(step));
  if (!/^\/[^\\#\s]*$/.test(below) || isUp) {
    throw new TypeError(
      `Expected a path such as /webhooks/uid:orders; got ${JSON.stringify(path)}`,
    );
  }
  return below;
}

/** An empty id, and one that is a step in a path, would make the address of another operation. */
function encodeId(id: unknown): string {
  if (typeof id !== 'string' || /^\.{0,2}$/.test(id)) {
    throw new TypeError(`Expected an id, or uid: and a uid; got ${JSON.stringify(id)}`);
  }
  return encodeURIComponent(id).replaceAll('%3A', ':');
}
