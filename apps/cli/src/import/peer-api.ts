import { TimeoutError } from '@posthorn/client';
import { parseRetryAfter, reasonOf, wait, within } from '@posthorn/client/requests';
import { CommandFailure, EXIT } from '../failures.ts';

const TIMEOUT_MS = 30_000;
/** Of an answer. A page of 250 Svix endpoints has about 200 kB; a list without pages may have thousands of entries. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** Attempts after an error of the server or the network: 0.5 + 1 + 2 + 4 + 8 s. */
const MAX_RETRIES = 5;
/** A limit of requests ends by itself, so it gets more attempts: about five minutes without a `Retry-After`. */
const MAX_LIMITED_RETRIES = 15;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
/** A longer `Retry-After` is a failure: nobody waits an hour before a prompt. */
const MAX_RETRY_AFTER_MS = 300_000;
/** A service that refuses so many requests in a row refuses the rest too. */
const MAX_FAILURES_IN_A_ROW = 20;

/** A JSON object of the service that is imported from. Unknown fields stay in it. */
export type Json = Readonly<Record<string, unknown>>;
export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** The service answers no more, or not to this token: nothing further can be read. */
export class PeerGone extends CommandFailure {
  override readonly name = 'PeerGone';
}

/** One request failed, or its answer is not what the published API document says. Others may succeed. */
export class PeerRefusal extends CommandFailure {
  override readonly name = 'PeerRefusal';
  /** Null for an answer that cannot be read. */
  readonly status: number | null;

  constructor(message: string, status: number | null = null) {
    super(message, status === 403 ? EXIT.notAllowed : EXIT.refused);
    this.status = status;
  }
}

export interface PeerSettings {
  /** For people: `Svix`. */
  name: string;
  /** Without a slash at its end. */
  url: string;
  token: string;
  signal: AbortSignal;
  /** For people: each wait, and how long it is. */
  onWait?: (text: string, ms: number) => void;
  /** Resolves after so many milliseconds. Tests pass their own. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Reads the API of the service that is imported from. The token is in no error, and the answers are not either. */
export class PeerApi {
  readonly name: string;
  readonly #settings: PeerSettings;
  #failuresInARow = 0;

  constructor(settings: PeerSettings) {
    if (!/^[\x21-\x7e]+$/.test(settings.token)) {
      throw new CommandFailure(
        `The token of ${settings.name} is empty, or has characters that no token has`,
        EXIT.usage,
      );
    }
    this.name = settings.name;
    this.#settings = settings;
  }

  /** Reads a JSON object. Throws PeerRefusal when this one cannot be read, and PeerGone when none can. */
  async get(path: string, query: Query = {}): Promise<Json> {
    const value = await this.#read(path, query);
    if (isJson(value)) return value;
    throw this.#refusal(path, 'has no JSON object in its answer');
  }

  /** Reads a list of JSON objects. */
  async list(path: string, query: Query = {}): Promise<Json[]> {
    const value = await this.#read(path, query);
    if (Array.isArray(value) && value.every(isJson)) return value;
    throw this.#refusal(path, 'has no list of JSON objects in its answer');
  }

  /** As `get`, and null when the service has no such object, or no such operation in its version. */
  async find(path: string, query: Query = {}): Promise<Json | null> {
    try {
      return await this.get(path, query);
    } catch (error) {
      if (error instanceof PeerRefusal && error.status === 404) return null;
      throw error;
    }
  }

  async #read(path: string, query: Query): Promise<unknown> {
    const address = addressOf(this.#settings.url, path, query);
    // Counted apart: limits of requests end by themselves.
    const retries = { limited: 0, failed: 0 };
    for (;;) {
      const answer = await this.#attempt(address);
      const isOk = answer.kind === 'answered' && answer.status >= 200 && answer.status < 300;
      if (isOk) this.#failuresInARow = 0;
      if (isOk) return this.#parse(path, answer.text);
      const kind = answer.kind === 'answered' && answer.status === 429 ? 'limited' : 'failed';
      const delayMs = delayAfter(answer, retries[kind]);
      retries[kind] += 1;
      if (delayMs === null) throw this.#failureOf(path, answer);
      const what = answer.kind === 'answered' ? `answered ${answer.status}` : 'did not answer';
      this.#settings.onWait?.(
        `${this.name} ${what} to GET ${path}: again in ${Math.ceil(delayMs / 1_000)} s`,
        delayMs,
      );
      await (this.#settings.sleep ?? wait)(delayMs, this.#settings.signal);
    }
  }

  async #attempt(address: string): Promise<Answer> {
    const { token, signal } = this.#settings;
    try {
      return await within({ timeoutMs: TIMEOUT_MS, signal }, async (limited) => {
        const response = await fetch(address, {
          headers: { accept: 'application/json', authorization: `Bearer ${token}` },
          // A redirect would bring the token to another host.
          redirect: 'manual',
          signal: limited,
        });
        const text = await readText(response);
        const retryAfter = response.headers.get('retry-after');
        return { kind: 'answered', status: response.status, retryAfter, text };
      });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof PeerRefusal) throw error;
      const isLate = error instanceof TimeoutError;
      return { kind: 'unreachable', reason: isLate ? error.message : reasonOf(error) };
    }
  }

  #parse(path: string, text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      // The message of JSON.parse shows a part of the text, which may have secrets.
      throw this.#refusal(path, 'has no JSON in its answer');
    }
  }

  #failureOf(path: string, answer: Answer): CommandFailure {
    const { name, url } = this.#settings;
    if (answer.kind === 'unreachable') {
      return new PeerGone(
        `${name} at ${url} cannot be reached: ${answer.reason}`,
        EXIT.unreachable,
      );
    }
    const { status } = answer;
    if (status === 401) {
      return new PeerGone(`${name} does not accept the token (401, GET ${path})`, EXIT.notAllowed);
    }
    if (status !== 404) this.#failuresInARow += 1;
    if (this.#failuresInARow >= MAX_FAILURES_IN_A_ROW) {
      return new PeerGone(
        `${name} refused ${this.#failuresInARow} requests in a row, the last one with ${status}`,
        status === 403 ? EXIT.notAllowed : EXIT.refused,
      );
    }
    return this.#refusal(path, `answered ${status}`, status);
  }

  #refusal(path: string, what: string, status: number | null = null): PeerRefusal {
    return new PeerRefusal(`${this.name} ${what} (GET ${path})`, status);
  }
}

type Answer =
  | { kind: 'answered'; status: number; retryAfter: string | null; text: string }
  | { kind: 'unreachable'; reason: string };

/** Returns how long to wait before the next attempt; null when there is none. */
function delayAfter(answer: Answer, retries: number): number | null {
  const usualMs = Math.min(FIRST_DELAY_MS * 2 ** retries, MAX_DELAY_MS);
  if (answer.kind === 'unreachable') return retries < MAX_RETRIES ? usualMs : null;
  const { status, retryAfter } = answer;
  const isLimited = status === 429;
  if (!isLimited && status !== 408 && status < 500) return null;
  if (status === 501 || retries >= (isLimited ? MAX_LIMITED_RETRIES : MAX_RETRIES)) return null;
  const askedMs = parseRetryAfter(retryAfter, Date.now());
  if (askedMs === null) return usualMs;
  return askedMs <= MAX_RETRY_AFTER_MS ? askedMs : null;
}

function addressOf(url: string, path: string, query: Query): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value ?? []].flat()) given.append(name, String(each));
  }
  return `${url}${path}${given.size === 0 ? '' : `?${given.toString()}`}`;
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: AsyncIterable<Uint8Array> | Uint8Array[] = response.body ?? [];
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) {
      throw new PeerRefusal(`An answer has more than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A step of a path. */
export const step = (id: string): string => encodeURIComponent(id);

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a text that is not empty; else undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

export function jsonsOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isJson) : [];
}

/** The object, or an empty one. */
export const jsonOf = (value: unknown): Json => (isJson(value) ? value : {});

/** The id of an object, without which nothing can be said of it. */
export function idOf(object: Json, field: string, api: PeerApi): string {
  const id = textOf(object[field]) ?? numberOf(object[field])?.toString();
  if (id === undefined) throw new PeerRefusal(`${api.name} returned an object without ${field}`);
  return id;
}

/** Something that was read, or why it could not be. */
export type Read = Json | PeerRefusal;

/** Reads one object of many. A refusal of it becomes its result; what concerns all objects is thrown. */
export async function attemptRead(read: () => Promise<Json>): Promise<Read> {
  try {
    return await read();
  } catch (error) {
    return refusalOf(error);
  }
}

/** Returns a refusal of one object. Throws every other error. */
export function refusalOf(error: unknown): PeerRefusal {
  if (error instanceof PeerRefusal) return error;
  throw error;
}

/** Returns the objects of pages one by one, and at the end why there are no more, when a page could not be read. */
export async function* objectsOf(
  pages: AsyncIterable<Json[]>,
): AsyncGenerator<Read, void, undefined> {
  try {
    for await (const page of pages) yield* page;
  } catch (error) {
    yield refusalOf(error);
  }
}

/** Starts reading before the first object is taken: an app with few endpoints costs no wait of its own. */
export async function readAhead<T>(items: AsyncGenerator<T>): Promise<AsyncGenerator<T>> {
  const first = await items.next();
  return (async function* all() {
    if (first.done) return;
    yield first.value;
    yield* items;
  })();
}

/**
 * Works on items in their order, at most `limit` at once, and only as fast as the results are taken. A failure ends it
 * once it is its turn.
 */
export async function* mapConcurrently<T, R>(
  items: AsyncIterable<T> | Iterable<T>,
  limit: number,
  work: (item: T) => Promise<R>,
): AsyncGenerator<R, void, undefined> {
  const running: Promise<R>[] = [];
  for await (const item of items) {
    const started = work(item);
    // Its failure is thrown below, after the results before it.
    started.catch(() => undefined);
    running.push(started);
    if (running.length >= limit) yield (await running.shift()) as R;
  }
  for (const started of running) yield await started;
}
