import type { IncomingMessage, ServerResponse } from 'node:http';
import { ByteCollector, tooLarge } from './read-bytes.ts';
import { MAX_BODY_BYTES, type ReceiveOptions, refusalOf, VerifiedRequests } from './receive.ts';
import { checkOptions, verify, type VerifiedEvent } from './verify.ts';
import { bodyWasParsed } from './verify-error.ts';

export type { ReceiveOptions } from './receive.ts';

/** A request of Express, of connect, or of Node's own server. */
export interface ExpressRequest extends IncomingMessage {
  body?: unknown;
  /** The bytes beside a parsed body, as some hosts of functions provide them. */
  rawBody?: unknown;
}

const verified = new VerifiedRequests();

/**
 * Returns a middleware that reads and verifies the body, and answers requests that are not accepted: 401, or 200 for
 * an event that `seen` knows, 400 for one that is not JSON, 413 for a body that is too large, 500 when the body was
 * parsed before and 503 when the keys are unavailable. After it, `webhookOf(request)` is the event and `request.body`
 * its payload. Other errors go to `next`. Throws a TypeError when the options are wrong.
 */
export function verifyWebhook(
  options: ReceiveOptions,
): (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => void {
  checkOptions(options);
  return (request, response, next) => {
    void accept(request, response, options).then((isAccepted) => {
      if (isAccepted) next();
    }, next);
  };
}

/** Returns false when it has answered the request. */
async function accept(
  request: ExpressRequest,
  response: ServerResponse,
  options: ReceiveOptions,
): Promise<boolean> {
  try {
    const body = await rawBodyOf(request, options.maxBodyBytes ?? MAX_BODY_BYTES);
    const event = await verify({ ...options, body, headers: request.headers });
    verified.add(request, event);
    request.body = event.payload;
    return true;
  } catch (error) {
    const { status, text } = refusalOf(error, options);
    // The rest of the body is not read.
    if (!request.readableEnded) response.setHeader('connection', 'close');
    response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
    return false;
  }
}

/** Returns the event of a request behind `verifyWebhook`. Throws an Error for another one. */
export function webhookOf<Payload = unknown>(request: object): VerifiedEvent<Payload> {
  return verified.eventOf<Payload>(request);
}

async function rawBodyOf(request: ExpressRequest, maxBytes: number): Promise<unknown> {
  const given = [request.rawBody, request.body].find(
    (body) => typeof body === 'string' || ArrayBuffer.isView(body),
  );
  if (given !== undefined) return given;
  if (request.readableDidRead) {
    throw bodyWasParsed(
      'Put `app.post(path, verifyWebhook(…), handler)` before `app.use(express.json())`.',
    );
  }
  return readBody(request, maxBytes);
}

function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const collector = new ByteCollector(maxBytes);
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      request.off('data', onData).pause();
      reject(error);
    };
    const onData = (chunk: Uint8Array): void => {
      try {
        collector.add(chunk);
      } catch {
        fail(tooLarge(maxBytes));
      }
    };
    request.on('data', onData).once('error', fail);
    request.once('end', () => {
      resolve(collector.bytes());
    });
    const onClose = (): void => {
      fail(new Error('The request ended before its body.'));
    };
    if (request.destroyed) onClose();
    request.once('close', onClose);
  });
}
