import { apiErrorOf, ApiError, PosthornError } from './errors.ts';
import type { Operations, QueryOf } from './operations.ts';
import { wait, within } from './requests.ts';
import type { ApiPromise, List } from './results.ts';
import type {
  BatchMessage,
  CreatedMessage,
  CreateMessage,
  Delivery,
  ErasedPayload,
  ListedMessage,
  Message,
  MessageResult,
} from './schema.ts';
import { type CreateOptions, type RequestOptions, retryDelayMs } from './transport.ts';

/** A message with exactly one of `payload` and `rawPayload`. */
export type SendMessage = Omit<CreateMessage, 'payload'> &
  (
    | { payload: object; rawPayload?: undefined }
    /** The text of a JSON object. It is stored, signed and delivered byte for byte, such as `{"n":1.0}`. */
    | { rawPayload: string; payload?: undefined }
  );

/** A message of many. Without a key of its own it gets one. */
export type SendManyMessage = SendMessage & Pick<BatchMessage, 'idempotencyKey'>;

export interface WaitOptions {
  /** How long to wait in all; 60 s by default. Retries of a delivery take up to days. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

const WAIT_MS = 60_000;
const FIRST_POLL_MS = 250;
const MAX_POLL_MS = 5_000;

export class Messages {
  readonly #api: Operations;

  constructor(api: Operations) {
    this.#api = api;
  }

  /**
   * Sends a message to the webhooks of an app that select its event type, or to one webhook. Resolves once it is stored
   * durably; deliveries follow.
   */
  send(message: SendMessage, options?: CreateOptions): ApiPromise<CreatedMessage> {
    return this.#api.create('/webhook-messages', { body: () => bodyOf(message), options });
  }

  /**
   * Sends messages in batches of up to 1,000 messages and 1 MiB, one after the other, and resolves with what became of
   * each, in their order: a message that fails keeps no other from being stored. Messages that could not be stored for
   * the moment are sent again, up to `maxRetries` times, with the same keys. Rejects when a request fails as a whole, also
   * after earlier ones have succeeded: `results` of the error has what became of each message so far, and with its
   * `idempotencyKey` as an option, the same messages are safe to send again.
   */
  async sendMany(
    messages: readonly SendManyMessage[],
    options: CreateOptions = {},
  ): Promise<MessageResult[]> {
    const key = options.idempotencyKey ?? crypto.randomUUID();
    const keyed = { ...options, idempotencyKey: key };
    const results = messages.map((): MessageResult | null => null);
    let left = await itemsOf(messages, key);
    for (let retries = 0; ; retries += 1) {
      for (const batch of batchesOf(left)) {
        const body = `${OPEN}${batch.map(({ text }) => text).join()}${CLOSE}`;
        const sent = this.#api.create('/webhook-messages/batch', {
          body: () => body,
          options: keyed,
        });
        const found = await sent.catch((error: unknown) => {
          throw ofTheWhole(error, batch, results);
        });
        batch.forEach(({ index }, n) => {
          const result = found.results[n];
          if (result) results[index] = { ...result, index };
        });
      }
      left = left.filter(({ index }) => RETRYABLE_CODES.has(results[index]?.code ?? ''));
      // Never for NaN, which a setting that is missing becomes.
      const mayRetry = retries < this.#api.maxRetries(options);
      if (left.length === 0 || !mayRetry) return complete(results, key);
      const { signal = this.#api.signal } = options;
      await wait(retryDelayMs(new PosthornError(), retries, Math.random()), signal);
    }
  }

  /** Newest first. */
  list(query?: QueryOf<'GET', '/webhook-messages'>, options?: RequestOptions): List<ListedMessage> {
    return this.#api.byCursor('/webhook-messages', { query, options });
  }

  get(messageId: string, options?: RequestOptions): ApiPromise<Message> {
    return this.#api.call('GET', '/webhook-messages/{messageId}', { id: messageId, options });
  }

  /**
   * Erases the payload of a message and the responses of its deliveries, for good. Pending deliveries are cancelled. The
   * result says until when Kafka has the payload.
   */
  erasePayload(messageId: string, options?: RequestOptions): ApiPromise<ErasedPayload> {
    const path = '/webhook-messages/{messageId}/erase-payload';
    return this.#api.call('POST', path, { id: messageId, options });
  }

  /** The deliveries of a message with all their attempts, newest webhook first. */
  listDeliveries(
    messageId: string,
    query?: QueryOf<'GET', '/webhook-messages/{messageId}/deliveries'>,
    options?: RequestOptions,
  ): List<Delivery> {
    const path = '/webhook-messages/{messageId}/deliveries';
    return this.#api.byCursor(path, { id: messageId, query, options });
  }

  /**
   * Resolves with the message once none of its deliveries is pending: see its `status`. Rejects with a TimeoutError when
   * that takes longer. It polls after 0.25 s, then less and less often, at last every 5 s.
   */
  waitUntilFinal(
    messageId: string,
    { timeoutMs = WAIT_MS, signal = this.#api.signal }: WaitOptions = {},
  ): Promise<Message> {
    return within({ timeoutMs, signal }, async (limited) => {
      for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 1.5, MAX_POLL_MS)) {
        const message = await this.get(messageId, { signal: limited });
        if (message.status !== 'pending') return message;
        await wait(pollMs, limited);
      }
    });
  }
}

const MAX_MESSAGES = 1_000;
const MAX_BYTES = 1_048_576;
const OPEN = '{"messages":[';
const CLOSE = ']}';
/** Why a message may be stored when it is sent again. */
const RETRYABLE_CODES: ReadonlySet<string> = new Set([
  'unavailable',
  'idempotency_key_running',
  'internal_error',
]);

interface Item {
  index: number;
  text: string;
}

/** Messages are read at once: callers may change them afterwards. Their keys are the same whatever else is sent. */
async function itemsOf(messages: readonly SendManyMessage[], key: string): Promise<Item[]> {
  const read = messages.map(({ idempotencyKey, ...message }) => ({
    own: idempotencyKey,
    text: bodyOf(message),
  }));
  const prefix = await prefixOf(key);
  return read.map(({ own, text }, index) => {
    const field = JSON.stringify({ idempotencyKey: own ?? `${prefix}#${index}` }).slice(0, -1);
    return { index, text: `${field},${text.slice(1)}` };
  });
}

/** A key has at most 255 characters (docs/contract.md C8.1), and a place at most 10 digits. */
const MAX_PREFIX_CHARS = 255 - '#'.length - 10;

/** Returns what the keys of messages begin with: the key or, where they would be too long, its SHA-256 in hex. */
async function prefixOf(key: string): Promise<string> {
  if (key.length <= MAX_PREFIX_CHARS) return key;
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(key));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function* batchesOf(items: readonly Item[]): Generator<Item[]> {
  const encoder = new TextEncoder();
  let batch: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    // The comma counts too or, for the first message, the text around the list.
    const own = encoder.encode(item.text).length + 1;
    const isFull = batch.length === MAX_MESSAGES || bytes + own > MAX_BYTES;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
    }
    if (batch.length === 0) bytes = OPEN.length + CLOSE.length;
    batch.push(item);
    bytes += own;
  }
  if (batch.length > 0) yield batch;
}

type Results = readonly (MessageResult | null)[];

function complete(results: Results, idempotencyKey: string): MessageResult[] {
  if (results.every((each) => each !== null)) return [...results];
  const error = new PosthornError('The answer does not have a result for each message');
  throw Object.assign(error, { results, idempotencyKey });
}

/** Returns the error of a batch with the results so far, and with the places of messages in the whole. */
function ofTheWhole(error: unknown, batch: readonly Item[], results: Results): unknown {
  if (!(error instanceof PosthornError)) return error;
  return Object.assign(error instanceof ApiError ? withPlaces(error, batch) : error, { results });
}

/** An error names messages by their place in the batch; returns it with those of the caller. */
function withPlaces(error: ApiError, batch: readonly Item[]): ApiError {
  const place = (text: string): string =>
    text.replace(/\bmessages\.(\d+)/, (whole, n: string) => {
      const item = batch[Number(n)];
      return item ? `messages.${item.index}` : whole;
    });
  const { status, code, requestId, errors, retryAfterMs, idempotencyKey } = error;
  const placed = apiErrorOf({
    status,
    code,
    requestId,
    message: place(error.message),
    ...(errors && { errors: errors.map(({ path, message }) => ({ path: place(path), message })) }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
  return Object.assign(placed, idempotencyKey !== undefined && { idempotencyKey });
}

/**
 * Returns JSON with `payload` at its end. A raw one is written into it as it is, so it must be one JSON object and no
 * more: other text could add fields to the message.
 */
function bodyOf({ payload, rawPayload, ...fields }: SendMessage): string {
  if ((payload === undefined) === (rawPayload === undefined)) {
    throw new TypeError('Set exactly one of payload and rawPayload');
  }
  const text = rawPayload === undefined ? JSON.stringify(payload) : checkedObject(rawPayload);
  const start = JSON.stringify(fields).slice(0, -1);
  return `${start}${start === '{' ? '' : ','}"payload":${text}}`;
}

function checkedObject(text: string): string {
  if (!isObject(text)) throw new TypeError('rawPayload is not the text of one JSON object');
  // Half a surrogate pair has no bytes in UTF-8.
  if (!text.isWellFormed()) throw new TypeError('rawPayload is not well-formed Unicode');
  return text;
}

function isObject(text: string): boolean {
  try {
    JSON.parse(text);
    return text.trimStart().startsWith('{');
  } catch {
    return false;
  }
}
