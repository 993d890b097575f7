import type { Attempt } from '@posthorn/domain/message/delivery.ts';
import { deliveryHeaders } from '@posthorn/domain/request/delivery-headers.ts';
import { outcomeOfErrorCode, outcomeOfStatus, type Outcome } from '@posthorn/domain/outcome.ts';
import type { DueAttempt } from '@posthorn/domain/records/records.ts';
import type { Header } from '@posthorn/domain/webhook.ts';
import type { Dispatcher } from 'undici';
import type { DeadlineSweep, WithDeadline } from './deadline-sweep.ts';
import { PROXY_FAULT } from './connect/proxy/tunnel-error.ts';
import type { LoadedWebhook } from '../load/load-webhook.ts';
import { createResponseCapture, safeHeaders, type ResponseCapture } from './response-capture.ts';

/**
 * Makes one request. Resolves with its outcome, also when the endpoint fails; with null when nothing was
 * sent because our proxy failed. Never rejects.
 */
export type SendWebhook = (
  due: DueAttempt,
  payload: Buffer,
  webhook: LoadedWebhook,
  traceparent?: string,
  /** Required by webhooks with `oauth2`. */
  accessToken?: string,
) => Promise<Attempt | null>;

/** What bounds an exchange. */
export interface ExchangeDeps {
  deadlines: DeadlineSweep;
  /** For the whole exchange, from the look-up of the host to the end of the response. */
  timeoutMs: number;
  monotonicMs: () => number;
}

export interface SendDeps extends ExchangeDeps {
  /** Throws when the webhook's TLS settings cannot be used. */
  agentOf: (webhook: LoadedWebhook) => Pick<Dispatcher, 'dispatch'>;
  userAgent: string;
  wallClockMs: () => number;
}

/** What came of the exchange. */
interface Exchange {
  outcome: Outcome;
  statusCode: number | null;
  response: string | null;
  responseHeaders: Header[];
}

/** Why there is no status. A fault of our proxy is no outcome of the endpoint. */
type Failure = Outcome | typeof PROXY_FAULT;

export function createSendWebhook(deps: SendDeps): SendWebhook {
  const { wallClockMs, monotonicMs, userAgent } = deps;
  return async (due, payload, loaded, traceparent, accessToken) => {
    const { webhook, signer, origin, path } = loaded;
    const startedAtMs = wallClockMs();
    const startedMs = monotonicMs();
    const timestampSeconds = Math.floor(startedAtMs / 1_000);
    const parts = { messageId: due.messageId, timestampSeconds, payload, traceparent, accessToken };
    const exchange = await post(deps, () => {
      const headers = deliveryHeaders(webhook, signer, parts, userAgent);
      return { agent: deps.agentOf(loaded), options: { origin, path, headers, body: payload } };
    });
    if (!exchange) return null;
    const durationMs = Math.round(monotonicMs() - startedMs);
    const { attemptId: id, attemptNumber: number, trigger } = due;
    return { id, number, trigger, startedAtMs, durationMs, ...exchange };
  };
}

/** A request that can be made. */
interface PreparedRequest {
  agent: Pick<Dispatcher, 'dispatch'>;
  options: Pick<Dispatcher.DispatchOptions, 'origin' | 'path' | 'body'> & { headers: string[] };
}

/** One exchange under way. */
interface Running extends WithDeadline {
  controller: Dispatcher.DispatchController | null;
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
 * Never rejects: when `prepare` throws, the outcome is `aborted`. `keptBytes`: how much of the response is
 * kept; 4 KiB unless given.
 */
export function post(
  deps: ExchangeDeps,
  prepare: () => PreparedRequest,
  keptBytes?: number,
): Promise<Exchange | null> {
  return new Promise((resolve) => {
    const running = startExchange(deps, createResponseCapture(keptBytes), resolve);
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

function startExchange(
  { deadlines, monotonicMs, timeoutMs }: ExchangeDeps,
  capture: ResponseCapture,
  resolve: (exchange: Exchange | null) => void,
): Running {
  const running: Running = {
    controller: null,
    status: null,
    capture,
    isOver: false,
    deadlineAtMs: monotonicMs() + timeoutMs,
    expire() {
      running.finish('timeout');
      running.controller?.abort(TOO_LATE);
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

function handlerOf(running: Running): Dispatcher.DispatchHandler {
  return {
    onRequestStart(controller) {
      running.controller = controller;
      if (running.isOver) controller.abort(TOO_LATE);
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
