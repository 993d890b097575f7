import { MAX_BODY_BYTES, type ReceiveOptions, refusalOf, VerifiedRequests } from './receive.ts';
import { checkOptions, type RequestHeaders, verify, type VerifiedEvent } from './verify.ts';
import { bodyWasParsed } from './verify-error.ts';

export type { ReceiveOptions } from './receive.ts';

/** The parts of Fastify that are used here. */
interface FastifyScope {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parse: (
      request: unknown,
      body: unknown,
      done: (error: Error | null, body?: unknown) => void,
    ) => void,
  ): unknown;
  addHook(
    name: 'preValidation',
    hook: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): unknown;
}

interface FastifyRequest {
  headers: RequestHeaders;
  body: unknown;
}

interface FastifyReply {
  code(status: number): FastifyReply;
  type(contentType: string): FastifyReply;
  send(payload: string): unknown;
}

const verified = new VerifiedRequests();

/**
 * Returns a plugin that verifies every request of the scope in which it is registered, before the schemas of its
 * routes, and answers those that are not accepted: 401, or 200 for an event that `seen` knows, 400 for one that is not
 * JSON, 413 for a body that is too large, 500 when the body was parsed before and 503 when the keys are unavailable.
 * After it, `webhookOf(request)` is the event and `request.body` its payload. Throws a TypeError when the options are
 * wrong.
 */
export function verifyWebhook(options: ReceiveOptions): (scope: FastifyScope) => Promise<void> {
  checkOptions(options);
  const plugin = (scope: FastifyScope): Promise<void> => {
    scope.removeAllContentTypeParsers();
    const bodyLimit = options.maxBodyBytes ?? MAX_BODY_BYTES;
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, (_request, body, done) => {
      done(null, body);
    });
    scope.addHook('preValidation', async (request, reply) => {
      try {
        const event = await verify({ ...options, ...rawRequest(request) });
        verified.add(request, event);
        request.body = event.payload;
        return undefined;
      } catch (error) {
        const { status, text } = refusalOf(error, options);
        return reply.code(status).type('text/plain; charset=utf-8').send(text);
      }
    });
    return Promise.resolve();
  };
  // For the scope itself, not for one below it: what Fastify's own fastify-plugin does.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true });
}

/** Returns the event of a request in the scope of the plugin. Throws an Error for another one. */
export function webhookOf<Payload = unknown>(request: object): VerifiedEvent<Payload> {
  return verified.eventOf<Payload>(request);
}

function rawRequest({ headers, body = '' }: FastifyRequest): {
  headers: RequestHeaders;
  body: unknown;
} {
  if (typeof body === 'string' || ArrayBuffer.isView(body)) return { headers, body };
  throw bodyWasParsed(
    'Put `scope.register(verifyWebhook(…))` after other plugins of the scope that parse bodies.',
  );
}
