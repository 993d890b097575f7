import {
  type Attempt,
  type Outcome,
  outcomeOfErrorCode,
  outcomeOfStatus,
} from '@posthorn/domain/delivery/delivery.ts';
import { CONTROL_HEADER } from '@posthorn/domain/delivery/ending.ts';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { deliveryHeaders, type SignedParts } from '@posthorn/domain/request/delivery-headers.ts';
import type { Header, Webhook } from '@posthorn/domain/webhook.ts';
import { startTicker } from '@posthorn/platform/async/loop.ts';
import { createByteCollector } from '@posthorn/platform/memory/byte-collector.ts';
import { constants, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { LoadedWebhook } from '../webhooks.ts';
import type { Agent, RequestHandler } from './connect/connections.ts';
import { PROXY_FAULT } from './connect/egress-proxy.ts';

/**
 * Makes one request. Resolves with its outcome, also when the endpoint fails; with null when nothing was
 * sent because our proxy failed. Never rejects.
 */
export type SendWebhook = (
  due: DueAttempt,
  payload: Buffer,
  webhook: LoadedWebhook,
  sentWith?: SentWith,
) => Promise<Attempt | null>;

/** The further parts of a request; `accessToken` is required by webhooks with `oauth2`. */
export type SentWith = Pick<SignedParts, 'traceparent' | 'accessToken' | 'eventType'>;

/** The limits of an exchange. */
export interface ExchangeDeps {
  deadlines: DeadlineSweep;
  /** For the whole exchange, from the look-up of the host to the end of the response, unless it has a time of its own. */
  timeoutMs: number;
  monotonicMs: () => number;
}

interface SendDeps extends ExchangeDeps {
  /** Throws when the webhook's TLS settings cannot be used. */
  agentOf: (webhook: LoadedWebhook) => Agent;
  userAgent: string;
  /** The time of the attempt, and in the signature, which receivers compare with their own. Milliseconds since 1970. */
  nowMs: () => number;
}

/** The outcome of an exchange. */
interface Exchange {
  outcome: Outcome;
  statusCode: number | null;
  response: string | null;
  responseHeaders: Header[];
}

/** Why there is no status. A fault of our proxy is no outcome of the endpoint. */
type Failure = Outcome | typeof PROXY_FAULT;

export function createSendWebhook(deps: SendDeps): SendWebhook {
  const { nowMs, monotonicMs, userAgent } = deps;
  return async (due, payload, loaded, sentWith = {}) => {
    const { webhook, signer, origin, path } = loaded;
    const startedAtMs = nowMs();
    const startedMs = monotonicMs();
    const timestampSeconds = Math.floor(startedAtMs / 1_000);
    const parts = { messageId: due.messageId, timestampSeconds, payload, ...sentWith };
    const prepare = (): PreparedRequest => {
      const headers = deliveryHeaders(webhook, signer, parts, userAgent);
      return { agent: deps.agentOf(loaded), options: { origin, path, headers, body: payload } };
    };
    const exchange = await post(deps, prepare, { timeoutMs: timeoutMsOf(webhook) });
    if (!exchange) return null;
    const durationMs = Math.round(monotonicMs() - startedMs);
    const { attemptId: id, attemptNumber: number, trigger } = due;
    return { id, number, trigger, startedAtMs, durationMs, ...exchange };
  };
}

function timeoutMsOf({ timeoutSeconds }: Webhook): number | undefined {
  return timeoutSeconds === null ? undefined : timeoutSeconds * 1_000;
}

interface PostOptions {
  /** How much of the response is kept; 4 KiB unless given. */
  keptBytes?: number | undefined;
  /** That of the service unless given. */
  timeoutMs?: number | undefined;
}

/** A request that can be made. */
interface PreparedRequest {
  agent: Agent;
  options: Pick<Dispatcher.DispatchOptions, 'origin' | 'path' | 'body'> & { headers: string[] };
}

/** One exchange under way. */
interface Running extends WithDeadline {
  /** Ends the request, whether it was sent or waits for its connection. */
  end: () => void;
  status: { code: number; headers: Header[] } | null;
  capture: ResponseCapture;
  /** Ends the exchange, the first time. `failure` is its outcome unless a status has arrived. */
  finish: (failure: Failure) => void;
  isOver: boolean;
}

const TOO_LATE = new Error('the attempt took too long');
const ENOUGH_READ = new Error('enough of the response was read');

/**
 * The status decides the outcome: once it has arrived, a body that stalls, breaks off or never ends
 * changes nothing (docs/contract.md C10.2). Calling `dispatch` with a handler instead of `request` saves
 * a fifth of the dispatcher's CPU.
 *
 * Never rejects: when `prepare` throws, the outcome is `aborted`.
 */
export function post(
  deps: ExchangeDeps,
  prepare: () => PreparedRequest,
  { keptBytes, timeoutMs = deps.timeoutMs }: PostOptions = {},
): Promise<Exchange | null> {
  return new Promise((resolve) => {
    const capture = createResponseCapture(keptBytes);
    const running = startExchange(deps, { capture, timeoutMs, resolve });
    try {
      const { agent, options } = prepare();
      agent.dispatch({ ...options, method: 'POST' }, handlerOf(running));
    } catch {
      // undici refuses the path or a header, OpenSSL a certificate, or a later version has stored an
      // authMethod that this one does not know. Nothing was sent.
      running.finish('aborted');
    }
  });
}

interface NewExchange {
  capture: ResponseCapture;
  timeoutMs: number;
  resolve: (exchange: Exchange | null) => void;
}

function startExchange(
  { deadlines, monotonicMs }: ExchangeDeps,
  { capture, timeoutMs, resolve }: NewExchange,
): Running {
  const running: Running = {
    end: () => undefined,
    status: null,
    capture,
    isOver: false,
    timeoutMs,
    deadlineAtMs: monotonicMs() + timeoutMs,
    expire() {
      running.finish('timeout');
      running.end();
    },
    finish(failure) {
      if (running.isOver) return;
      running.isOver = true;
      deadlines.remove(running);
      resolve(exchangeOf(running, failure));
    },
  };
  deadlines.add(running);
  return running;
}

function exchangeOf({ status, capture }: Running, failure: Failure): Exchange | null {
  if (!status) {
    if (failure === PROXY_FAULT) return null;
    return { outcome: failure, statusCode: null, response: null, responseHeaders: [] };
  }
  return {
    outcome: outcomeOfStatus(status.code),
    statusCode: status.code,
    response: capture.text(valueOf(status.headers, 'content-encoding')),
    responseHeaders: status.headers,
  };
}

function valueOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find(({ key }) => key.toLowerCase() === name)?.value;
}

function handlerOf(running: Running): RequestHandler {
  return {
    onWaiting(cancel) {
      running.end = cancel;
    },
    onRequestStart(controller) {
      running.end = () => {
        controller.abort(TOO_LATE);
      };
    },
    onResponseStart(_controller, code, headers) {
      // Of informational responses only 101 gets here, and the connection ends with it.
      if (code >= 200) running.status = { code, headers: safeHeaders(headers) };
    },
    onResponseData(controller, chunk) {
      if (!running.capture.add(chunk)) stopReading(running, controller);
    },
    onResponseEnd() {
      running.finish('connect_error');
    },
    onResponseError(_controller, error) {
      const code = codeOf(error);
      running.finish(code === PROXY_FAULT ? PROXY_FAULT : outcomeOfErrorCode(code));
    },
  };
}

function stopReading(running: Running, controller: Dispatcher.DispatchController): void {
  running.finish('response_too_large');
  controller.abort(ENOUGH_READ);
}

/** Returns the outermost `code`: undici and the connection attempts to several addresses wrap errors. */
function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'UNKNOWN';
  if ('errors' in error && Array.isArray(error.errors)) return codeOf(error.errors[0]);
  if ('code' in error && typeof error.code === 'string') return error.code;
  return 'cause' in error ? codeOf(error.cause) : 'UNKNOWN';
}

/** How much of a response body is read, and how much of that is kept (docs/contract.md C9.9). */
const MAX_READ_BYTES = 65_536;
const MAX_KEPT_BYTES = 4_096;
const MAX_HEADER_CHARS = 256;

/** Headers that help to find a fault or control deliveries, and cannot carry a session or a secret. */
// prettier-ignore
const SAFE_HEADERS = new Set([
  'content-type', 'content-length', 'date', 'server', 'retry-after', 'location', 'via',
  'x-request-id', 'x-correlation-id', 'allow', 'content-encoding', 'cf-ray', CONTROL_HEADER,
]);

interface ResponseCapture {
  /** Returns false when nothing more should be read. */
  add: (chunk: Buffer) => boolean;
  /**
   * Returns the kept beginning of the body as text; bytes that are not UTF-8 become U+FFFD. Null when the body is
   * encoded (`content-encoding`) in a way that is not known here: its bytes are no text.
   */
  text: (encoding?: string) => string | null;
}

/** A body in absurdly small chunks is read no further, as a long one: each chunk costs the time of all endpoints. */
export function createResponseCapture(keptBytes = MAX_KEPT_BYTES): ResponseCapture {
  const body = createByteCollector({ maxBytes: keptBytes });
  return {
    add(chunk) {
      body.add(chunk);
      return body.receivedBytes() <= MAX_READ_BYTES && !body.isShredded();
    },
    text: (encoding) =>
      decoded(body.bytes(), encoding)?.subarray(0, keptBytes).toString('utf8') ?? null,
  };
}

/** The largest decoded body. To inflate it takes less than 0.5 ms. */
const MAX_DECODED_BYTES = 65_536;

/**
 * No encoding is asked for, but some servers compress all the same. Brotli and others, whose decoders may need 16 MiB,
 * are not decoded.
 */
function decoded(bytes: Buffer, encoding = 'identity'): Buffer | null {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return bytes;
    case 'gzip':
    case 'x-gzip':
      return beginningOf(bytes, gunzipSync);
    case 'deflate':
      return beginningOf(bytes, hasZlibHeader(bytes) ? inflateSync : inflateRawSync);
    default:
      return null;
  }
}

/** Some servers send `deflate` without the zlib header (RFC 9110, section 8.4.1.2), whose method is 8. */
function hasZlibHeader([first = 8]: Buffer): boolean {
  return first % 16 === 8;
}

/**
 * A body that was cut off is decoded as far as it goes. zlib throws all away when the decoded body is too large, so a
 * quarter of the bytes is tried then: 4 KiB become at most 4.2 MB, and 64 bytes at most 66 kB, so this takes 6 trials.
 */
function beginningOf(bytes: Buffer, inflate: typeof gunzipSync): Buffer | null {
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: MAX_DECODED_BYTES };
  for (let size = bytes.length; ; size = Math.floor(size / 4)) {
    try {
      return inflate(bytes.subarray(0, size), options);
    } catch (error) {
      const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      if (!isTooLarge || size === 0) return null;
    }
  }
}

export function safeHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Header[] {
  return Object.entries(headers)
    .filter(([name, value]) => value !== undefined && SAFE_HEADERS.has(name.toLowerCase()))
    .map(([key, value]) => ({ key, value: String(value).slice(0, MAX_HEADER_CHARS) }));
}

/** Work that must end by a deadline. */
export interface WithDeadline {
  /** From its beginning to the deadline. */
  timeoutMs: number;
  /** By the monotonic clock (`performance.now`). */
  deadlineAtMs: number;
  /** Called once the deadline has passed. */
  expire: () => void;
}

export interface DeadlineSweep {
  add: (work: WithDeadline) => void;
  remove: (work: WithDeadline) => void;
  tick: () => void;
  stop: () => void;
}

const EVERY_MS = 100;

/**
 * One timer for all attempts under way. Attempts with the same timeout are in one list, whose insertion order is
 * deadline order, so that a sweep stops at the first deadline to come in each. There are at most 16 lists: webhooks have
 * timeouts of 1 to 15 s, and the service has one. An AbortController with a timer for each attempt cost a third of the
 * throughput (docs/decisions/0005-one-deadline-sweep.md).
 */
export function createDeadlineSweep(nowMs: () => number): DeadlineSweep {
  const lists = new Map<number, Set<WithDeadline>>();
  function expireIn(running: Set<WithDeadline>, now: number): void {
    for (const work of running) {
      if (work.deadlineAtMs > now) return;
      running.delete(work);
      work.expire();
    }
  }
  function tick(): void {
    const now = nowMs();
    for (const running of lists.values()) expireIn(running, now);
  }
  const ticker = startTicker(EVERY_MS, tick);
  return {
    add(work) {
      const running = lists.get(work.timeoutMs);
      if (running) running.add(work);
      else lists.set(work.timeoutMs, new Set([work]));
    },
    remove: (work) => lists.get(work.timeoutMs)?.delete(work),
    tick,
    stop: ticker.stop,
  };
}
