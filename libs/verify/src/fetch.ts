import { readBytes } from './read-bytes.ts';
import { MAX_BODY_BYTES, type ReceiveOptions, refusalOf } from './receive.ts';
import { checkOptions, verify, type VerifiedEvent } from './verify.ts';
import { bodyWasParsed } from './verify-error.ts';

export type { ReceiveOptions } from './receive.ts';

/**
 * Reads and verifies a request of `fetch`. Throws a VerifyError when it is not accepted, a TypeError when the options
 * are wrong, and what `seen` throws.
 */
export async function verifyRequest<Payload = unknown>(
  request: Request,
  options: ReceiveOptions,
): Promise<VerifiedEvent<Payload>> {
  checkOptions(options);
  if (request.bodyUsed) {
    throw bodyWasParsed(
      'Verify the request first, and use `event.payload` in place of `await request.json()`.',
    );
  }
  const body = await readBytes(request.body, options.maxBodyBytes ?? MAX_BODY_BYTES);
  return verify<Payload>({ ...options, body, headers: request.headers });
}

/**
 * Returns the answer to a request that `verifyRequest` did not accept: 401, or 200 for an event that `seen` knows, 400
 * for one that is not JSON, 413 for a body that is too large, 500 when the body was parsed before and 503 when the keys
 * are unavailable. Throws the error again when it is not a VerifyError.
 */
export function refuse(error: unknown, options: ReceiveOptions): Response {
  const { status, text } = refusalOf(error, options);
  return new Response(text, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

/**
 * Returns a handler of requests, for workers, `Deno.serve`, `Bun.serve` and routes of frameworks with `Request` and
 * `Response`. It verifies each request and answers those that are not accepted. `handle` may return no response, which
 * is 204. Throws a TypeError when the options are wrong.
 */
export function receiveWebhooks<Rest extends unknown[], Payload = unknown>(
  options: ReceiveOptions,
  handle: (
    event: VerifiedEvent<Payload>,
    request: Request,
    ...rest: Rest
  ) => Response | undefined | Promise<Response | undefined> | Promise<void>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  checkOptions(options);
  return async (request, ...rest) => {
    let event: VerifiedEvent<Payload>;
    try {
      event = await verifyRequest<Payload>(request, options);
    } catch (error) {
      return refuse(error, options);
    }
    return (await handle(event, request, ...rest)) ?? new Response(null, { status: 204 });
  };
}
