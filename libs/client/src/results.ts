import { PosthornError } from './errors.ts';
import type { Answer, Envelope } from './transport.ts';

/** The result of a call: a promise of its `data`, and with `withResponse()` of the whole answer. */
export class ApiPromise<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'ApiPromise';
  readonly #answer: Promise<Answer<T>>;

  constructor(answer: Promise<Answer<T>>) {
    this.#answer = answer;
  }

  withResponse(): Promise<Answer<T>> {
    return this.#answer;
  }

  // Delegates to a promise, and so may be awaited itself.
  then<A = T, B = never>(
    onResolved?: ((data: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#answer.then(({ data }) => data).then(onResolved, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, onRejected);
  }

  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.then().finally(onSettled);
  }
}

export interface Page<T> {
  items: T[];
  /** The `cursor` of the next page. Null on the last page, and in lists with `skip`. */
  nextCursor: string | null;
}

/** Where a page begins. */
export type Position = { cursor?: string } | { skip?: number };

/**
 * How a list continues. `cursor`: where the page says, also after an empty one. `skip`: behind the entries before, until
 * a page is not full. `whole`: it has one page.
 */
export type Paging =
  | { kind: 'cursor'; cursor?: string | undefined }
  | { kind: 'skip'; skip: number; limit: number }
  | { kind: 'whole' };

/**
 * A list. Awaited, it is its first page; in `for await`, all its items, whose pages are requested as they are needed.
 * A list with `skip` counts entries: collect them before you delete some, or the entries behind those are passed over.
 */
export class List<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #request: (position: Position) => Promise<Answer<Envelope>>;
  readonly #paging: Paging;
  #first: ApiPromise<Page<T>> | null = null;

  /** Requests nothing yet. */
  constructor(request: (position: Position) => Promise<Answer<Envelope>>, paging: Paging) {
    this.#request = request;
    this.#paging = paging;
  }

  withResponse(): Promise<Answer<Page<T>>> {
    return this.#firstPage().withResponse();
  }

  // A list has the `then` of a promise, so that it may be awaited.
  then<A = Page<T>, B = never>(
    onResolved?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#firstPage().then(onResolved, onRejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }

  /** Each page in order. Throws when the API returns a cursor again, which would never end. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    const cursors = new Set<string>();
    let position: Position | null = startOf(this.#paging);
    while (position) {
      const page: Page<T> = pageOf(await this.#request(position)).data as Page<T>;
      yield page;
      if (page.nextCursor !== null && cursors.has(page.nextCursor)) {
        throw new PosthornError(`The API returned the cursor ${page.nextCursor} twice`);
      }
      if (page.nextCursor !== null) cursors.add(page.nextCursor);
      position = this.#after(page, position);
    }
  }

  /**
   * The first `limit` entries, or all when there are fewer. No page behind them is requested; Infinity reads the whole
   * list, however long it is.
   */
  async toArray({ limit }: { limit: number }): Promise<T[]> {
    if (!(limit >= 1 && (Number.isInteger(limit) || limit === Infinity))) {
      throw new TypeError(`limit must be a whole number from 1, or Infinity; got ${limit}`);
    }
    const items: T[] = [];
    for await (const item of this) {
      items.push(item);
      if (items.length >= limit) break;
    }
    return items;
  }

  #firstPage(): ApiPromise<Page<T>> {
    this.#first ??= new ApiPromise(
      this.#request(startOf(this.#paging)).then((answer) => pageOf<T>(answer)),
    );
    return this.#first;
  }

  #after({ items, nextCursor }: Page<T>, position: Position): Position | null {
    const paging = this.#paging;
    switch (paging.kind) {
      case 'cursor':
        return nextCursor === null ? null : { cursor: nextCursor };
      case 'skip': {
        const { skip = 0 } = position as { skip?: number };
        return items.length < paging.limit ? null : { skip: skip + items.length };
      }
      case 'whole':
        return null;
    }
  }
}

function startOf(paging: Paging): Position {
  switch (paging.kind) {
    case 'cursor':
      return paging.cursor === undefined ? {} : { cursor: paging.cursor };
    case 'skip':
      return { skip: paging.skip };
    case 'whole':
      return {};
  }
}

function pageOf<T>({ data: envelope, ...rest }: Answer<Envelope>): Answer<Page<T>> {
  const { data, nextCursor = null } = envelope;
  return { ...rest, data: { items: data as T[], nextCursor } };
}
