import { apiErrorOf, ApiError, ConnectionError, PosthornError } from './errors.ts';
import { defaultHeaders, type GivenHeaders, parseHeaders } from './headers.ts';
import { causesOf, isObject, parseRetryAfter, reasonOf, wait, within } from './requests.ts';
import type { Problem } from './schema.ts';

/** A `Retry-After` beyond this is not waited for: the usual delay counts. */
const MAX_RETRY_AFTER_MS = 60_000;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8_000;
/** Of a delay. Clients that failed together do not come back together. */
const MAX_JITTER = 0.25;
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Options of one call. They take the place of those of the client. */
export interface RequestOptions {
  /** Ends the call, whose promise then rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How long each attempt may take, to the last byte of its answer. */
  timeoutMs?: number | undefined;
  /** How often an attempt that failed is repeated. */
  maxRetries?: number | undefined;
  /** Headers such as `traceparent`, beside those of the client with other names. */
  headers?: GivenHeaders | undefined;
}

/** Options of a call that the API carries out once for each key (docs/contract.md C8). */
export interface CreateOptions extends RequestOptions {
  /**
   * 1 to 255 printable ASCII characters; a random one by default. Set your own, such as the id of your event, when your
   * process may end before the answer comes and send again: the API keeps keys for 24 hours.
   */
  idempotencyKey?: string | undefined;
}

export interface Logger {
  /** Each attempt and how it ended. */
  debug(message: string): void;
  /** Each failure that is followed by a retry. */
  warn(message: string): void;
}

export interface TransportSettings {
  apiKey: string | (() => string | Promise<string>);
  /** The address, without a slash at its end. */
  baseUrl: string;
  timeoutMs: number;
  maxRetries: number;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  logger: Logger | undefined;
  /** By lower-case name; of every call. */
  headers: GivenHeaders;
  /** The signal of every call that has none of its own. */
  signal: AbortSignal | undefined;
}

export interface ApiRequest {
  method: string;
  /** Below /api/v1, with its query. */
  path: string;
  /** JSON. */
  body: string | undefined;
  /** Null for an operation that takes none. */
  idempotencyKey: string | null;
  options: RequestOptions;
}

/** The result of a call with `withResponse()`. */
export interface Answer<T> {
  data: T;
  /** Its body was read already. */
  response: Response;
  /** Identifies the request in the logs of the service. */
  requestId: string | null;
  /** Of a page of a list that `request` returned: the `cursor` of the next one, null on the last page. */
  nextCursor?: string | null;
}

/** The envelope of a success (docs/contract.md C2). */
export interface Envelope {
  data?: unknown;
  nextCursor?: string | null;
}

/** Makes requests: authentication, time limits and retries. It alone knows the API key, which it never shows. */
export class Transport {
  readonly #settings: TransportSettings;

  constructor(settings: TransportSettings) {
    this.#settings = settings;
  }

  maxRetries({ maxRetries = this.#settings.maxRetries }: RequestOptions): number {
    return maxRetries;
  }

  get signal(): AbortSignal | undefined {
    return this.#settings.signal;
  }

  /** Resolves with the envelope of the success. Rejects with a PosthornError, or the reason of the caller's signal. */
  async send(given: ApiRequest): Promise<Answer<Envelope>> {
    const options = { ...given.options, signal: given.options.signal ?? this.signal };
    const request = { ...given, options };
    const { method, path, idempotencyKey } = request;
    const maxRetries = this.maxRetries(options);
    let mayBeDone = false;
    for (let retries = 0; ; retries += 1) {
      try {
        const { response, text } = await this.#attempt(request, retries);
        return answerOf(response, text, { isGoneDone: mayBeDone && method === 'DELETE' });
      } catch (error) {
        if (!(error instanceof PosthornError)) throw error;
        if (idempotencyKey !== null) error.idempotencyKey = idempotencyKey;
        // Never for NaN, which a setting that is missing becomes.
        if (!(retries < maxRetries) || !isRetryable(request, error)) throw error;
        mayBeDone ||= mayHaveBeenCarriedOut(error);
        const delayMs = retryDelayMs(error, retries, Math.random());
        this.#settings.logger?.warn(
          `${method} ${path} failed (${error.message}); retry ${retries + 1} of ${maxRetries} in ${delayMs} ms`,
        );
        await wait(delayMs, options.signal);
      }
    }
  }

  async #attempt(
    request: ApiRequest,
    retries: number,
  ): Promise<{ response: Response; text: string }> {
    const { method, path, body, options } = request;
    const { baseUrl, fetch, logger } = this.#settings;
    options.signal?.throwIfAborted();
    const headers = await this.#headersOf(request, retries);
    const timeoutMs = options.timeoutMs ?? this.#settings.timeoutMs;
    const startedMs = performance.now();
    const answer = await within({ timeoutMs, signal: options.signal }, async (signal) => {
      // A redirect would make a GET of a POST. API addresses have none.
      const init = { method, headers, body: body ?? null, signal, redirect: 'manual' } as const;
      try {
        const response = await fetch(`${baseUrl}/api/v1${path}`, init);
        return { response, text: await response.text() };
      } catch (error) {
        const message = `Cannot connect, or the answer broke off: ${reasonOf(error)}`;
        throw new ConnectionError(message, { cause: error });
      }
    });
    logger?.debug(
      `${method} ${path}: ${answer.response.status} in ${Math.round(performance.now() - startedMs)} ms`,
    );
    return answer;
  }

  async #headersOf(
    { body, idempotencyKey, options }: ApiRequest,
    retries: number,
  ): Promise<Record<string, string>> {
    return {
      ...defaultHeaders(),
      ...this.#settings.headers,
      ...parseHeaders(options.headers),
      accept: 'application/json',
      authorization: `Bearer ${await this.#readKey()}`,
      'x-posthorn-retry-count': String(retries),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(idempotencyKey !== null && { 'idempotency-key': idempotencyKey }),
    };
  }

  /** Checks the key by itself: the error of `fetch` would show a header that is not valid. */
  async #readKey(): Promise<string> {
    const { apiKey } = this.#settings;
    const key = (typeof apiKey === 'string' ? apiKey : await apiKey()).trim();
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new TypeError('The API key is empty, or has characters that no API key has');
    }
    return key;
  }
}

/** Node's code, Bun's code, and the text of Deno. */
const REFUSED = /ECONNREFUSED|ConnectionRefused|connection refused/i;

/** Returns whether nothing of the request has reached the API. */
function wasRefused(error: PosthornError): boolean {
  const causes = causesOf(error.cause);
  return causes.some(({ code, message }) => REFUSED.test(`${String(code)} ${String(message)}`));
}

/** Returns whether the API may have done what it gave no answer to, or a 5xx. */
function mayHaveBeenCarriedOut(error: PosthornError): boolean {
  return error instanceof ApiError ? error.status >= 500 : !wasRefused(error);
}

/** A POST without a key may have been carried out, unless its connection was refused. */
function isRetryable({ method, idempotencyKey }: ApiRequest, error: PosthornError): boolean {
  const isTransient =
    !(error instanceof ApiError) ||
    RETRYABLE_STATUSES.has(error.status) ||
    error.code === 'idempotency_key_running';
  return isTransient && (method !== 'POST' || idempotencyKey !== null || wasRefused(error));
}

/** `random` is from 0 to 1. */
export function retryDelayMs(error: PosthornError, retries: number, random: number): number {
  const retryAfterMs = error instanceof ApiError ? error.retryAfterMs : undefined;
  if (retryAfterMs !== undefined && retryAfterMs <= MAX_RETRY_AFTER_MS) return retryAfterMs;
  const delayMs = Math.min(FIRST_DELAY_MS * 2 ** retries, MAX_DELAY_MS);
  return Math.round(delayMs * (1 - MAX_JITTER * random));
}

/** `isGoneDone`: an earlier attempt may have deleted what is not there now. A proxy's 404 has no code. */
function answerOf(
  response: Response,
  text: string,
  { isGoneDone }: { isGoneDone: boolean },
): Answer<Envelope> {
  const body = parseObject(text);
  const requestId = response.headers.get('x-request-id');
  if (isGoneDone && response.status === 404 && body?.code === 'not_found') {
    return { data: {}, response, requestId };
  }
  if (!response.ok) throw failureOf(response, body ?? {}, requestId);
  if (!body) throw new ConnectionError('The answer is not from Posthorn, or broke off');
  return { data: body, response, requestId };
}

function failureOf(
  { status, headers }: Response,
  { code, message, errors }: Partial<Record<string, unknown>>,
  requestId: string | null,
): ApiError {
  const location = headers.get('location');
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), Date.now());
  return apiErrorOf({
    status,
    code: typeof code === 'string' ? code : 'unknown',
    message:
      typeof message === 'string'
        ? message
        : `The answer has the status ${status}${location === null ? '' : ` and leads to ${location}`}`,
    requestId,
    ...(Array.isArray(errors) && { errors: errors as Problem[] }),
    ...(retryAfterMs !== null && { retryAfterMs }),
  });
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
