import { refuse, verifyRequest } from './fetch.ts';
import type { Bytes } from './read-bytes.ts';
import { type ReceiveOptions, VerifiedRequests } from './receive.ts';
import { checkOptions, type VerifiedEvent } from './verify.ts';

export type { ReceiveOptions } from './receive.ts';

/** The part of Hono's context that is used here. */
interface HonoContext {
  req: { raw: Request };
}

const verified = new VerifiedRequests();

/**
 * Returns a middleware that reads and verifies the body, and answers requests that are not accepted: 401, or 200 for
 * an event that `seen` knows, 400 for one that is not JSON, 413 for a body that is too large, 500 when the body was
 * read before and 503 when the keys are unavailable. After it, `webhookOf(context)` is the event, and the body can be
 * read again. Throws a TypeError when the options are wrong.
 */
export function verifyWebhook(
  options: ReceiveOptions,
): (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined> {
  checkOptions(options);
  return async (context, next) => {
    const { raw } = context.req;
    try {
      const event = await verifyRequest(raw, options);
      verified.add(context, event);
      context.req.raw = new Request(raw, { body: event.rawBody as Bytes });
    } catch (error) {
      return refuse(error, options);
    }
    await next();
    return undefined;
  };
}

/** Returns the event of a request behind `verifyWebhook`. Throws an Error for another one. */
export function webhookOf<Payload = unknown>(context: object): VerifiedEvent<Payload> {
  return verified.eventOf<Payload>(context);
}
