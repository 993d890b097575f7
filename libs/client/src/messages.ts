import type { Operations, QueryOf } from './operations.ts';
import type { ApiPromise, List } from './results.ts';
import type { CreatedMessage, CreateMessage, Delivery, ListedMessage, Message } from './schema.ts';
import { type CreateOptions, type RequestOptions, wait, within } from './transport.ts';

/** A message with exactly one of `payload` and `rawPayload`. */
export type SendMessage = Omit<CreateMessage, 'payload'> &
  (
    | { payload: object; rawPayload?: undefined }
    /** The text of a JSON object. It is stored, signed and delivered byte for byte, such as `{"n":1.0}`. */
    | { rawPayload: string; payload?: undefined }
  );

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

  /** Newest first. */
  list(query?: QueryOf<'GET', '/webhook-messages'>, options?: RequestOptions): List<ListedMessage> {
    return this.#api.byCursor('/webhook-messages', { query, options });
  }

  get(messageId: string, options?: RequestOptions): ApiPromise<Message> {
    return this.#api.call('GET', '/webhook-messages/{messageId}', { id: messageId, options });
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
    { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
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
