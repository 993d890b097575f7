import type { VerifiedEvent, VerifyOptions } from './verify.ts';
import { VerifyError, type VerifyReason } from './verify-error.ts';

/** The options of a receiver in a framework. */
export interface ReceiveOptions extends VerifyOptions {
  /** The longest body that is read, in bytes; 1 MiB by default. */
  maxBodyBytes?: number;
  /** Called with each refusal before it is answered, for a log. */
  onRefused?: (error: VerifyError) => void;
}

export const MAX_BODY_BYTES = 1_048_576;

/** Answers that are not 401. */
const STATUS: Partial<Record<VerifyReason, number>> = {
  // Handled before, but the sender has not learned it: it must not send the event again.
  seen_before: 200,
  not_json: 400,
  body_too_large: 413,
  // Not the sender's fault.
  body_was_parsed: 500,
  keys_unavailable: 503,
};

/** The answer to a request that is not accepted, as plain text. */
export interface Refusal {
  status: number;
  text: string;
}

/** Returns the answer to a request that `verify` did not accept. Throws the error again when it is another one. */
export function refusalOf(error: unknown, { onRefused }: ReceiveOptions): Refusal {
  if (!(error instanceof VerifyError)) throw error;
  onRefused?.(error);
  return { status: STATUS[error.reason] ?? 401, text: `${error.reason}: ${error.message}` };
}

/** Keeps the events of requests that are being handled. */
export class VerifiedRequests {
  readonly #events = new WeakMap<object, VerifiedEvent>();

  add(request: object, event: VerifiedEvent): void {
    this.#events.set(request, event);
  }

  /** Throws an Error when the request was not verified. */
  eventOf<Payload>(request: object): VerifiedEvent<Payload> {
    const event = this.#events.get(request);
    if (!event) throw new Error('This request was not verified: its route lacks verifyWebhook.');
    return event as VerifiedEvent<Payload>;
  }
}
