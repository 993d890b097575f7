/**
 * Why a request is refused.
 *
 * - `missing_header`: a header of the signature is absent.
 * - `bad_header`: the timestamp is not a number of seconds.
 * - `too_old`, `too_new`: the timestamp is further from now than the tolerance.
 * - `no_match`: no signature is by one of the secrets or keys. The body, a header or the secret is another one.
 * - `body_was_parsed`: the body is no longer the bytes that were signed. The message names the line to change.
 * - `body_too_large`: the body is longer than `maxBodyBytes`.
 * - `not_json`: the signature is good, but the body is not JSON in UTF-8.
 * - `seen_before`: the signature is good, but `seen` knows the id.
 * - `keys_unavailable`: `jwksUrl` did not answer with keys, so the signature could not be checked.
 */
export type VerifyReason =
  | 'missing_header'
  | 'bad_header'
  | 'too_old'
  | 'too_new'
  | 'no_match'
  | 'body_was_parsed'
  | 'body_too_large'
  | 'not_json'
  | 'seen_before'
  | 'keys_unavailable';

/** A request that is not accepted. Its message is safe to send back: it has no secret and nothing of the body. */
export class VerifyError extends Error {
  override readonly name = 'VerifyError';
  readonly reason: VerifyReason;

  constructor(reason: VerifyReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** `change` is a sentence with the line to change. */
export const bodyWasParsed = (change: string): VerifyError =>
  new VerifyError(
    'body_was_parsed',
    `Something has parsed the body, and the bytes that were signed are gone. ${change}`,
  );
