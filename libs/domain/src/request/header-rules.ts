/** RFC 9110, 5.6.2: the characters of a header name. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/**
 * Printable Latin-1 without tabs, so that CR, LF and NUL can never reach the wire, and without a space at either end:
 * that is no part of a field value (RFC 9110, 5.5), so the receiver would get another one.
 */
export const HEADER_VALUE_PATTERN =
  '^([\\x21-\\x7e\\xa0-\\xff]([\\x20-\\x7e\\xa0-\\xff]*[\\x21-\\x7e\\xa0-\\xff])?)?$';
export const MAX_HEADER_VALUE_CHARS = 4_096;
const VALUE = new RegExp(HEADER_VALUE_PATTERN);

/** Of user names, passwords and other credentials: no control characters (RFC 7617, 2; RFC 6749, A). */
export const CREDENTIAL_PATTERN = '^[^\\x00-\\x1f\\x7f]*$';
const CREDENTIAL = new RegExp(CREDENTIAL_PATTERN);

/** Names in lower case; a client may not set them, however it spells them. */
// prettier-ignore
export const REFUSED_NAMES: ReadonlySet<string> = new Set([
  // The sender sets connection, framing and routing.
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host',
  'cookie', 'expect', 'via', 'x-real-ip', 'forwarded', 'http2-settings',
  // These unlock the metadata services of clouds.
  'metadata', 'metadata-flavor', 'x-google-metadata-request',
  // Posthorn sets these itself.
  'user-agent', 'traceparent', 'tracestate',
]);
/** Prefixes of names that a client may not set. */
// prettier-ignore
export const REFUSED_PREFIXES: readonly string[] = [
  'proxy-', 'x-forwarded-', 'content-', 'webhook-', 'x-aws-ec2-metadata-token',
];

/** Returns why a client may not set the header; null when it may. */
export function refusalOfHeaderName(name: string): string | null {
  if (!TOKEN.test(name)) return 'must be an HTTP header name of at most 128 characters';
  const lower = name.toLowerCase();
  const isReserved =
    REFUSED_NAMES.has(lower) || REFUSED_PREFIXES.some((prefix) => lower.startsWith(prefix));
  return isReserved ? 'is a header that the service or the connection sets' : null;
}

export function isHeaderValue(value: string): boolean {
  return value.length <= MAX_HEADER_VALUE_CHARS && VALUE.test(value);
}

/** False for text that would not arrive as it is: with control characters, or with half a character (a lone surrogate). */
export function isCredential(text: string): boolean {
  return CREDENTIAL.test(text) && text.isWellFormed();
}
