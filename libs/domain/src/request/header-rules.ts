/** RFC 9110, 5.6.2: the characters of a header name. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** Printable Latin-1 and tab-free: CR, LF and NUL can never reach the wire. */
const VALUE = /^[\x20-\x7e\xa0-\xff]{0,4096}$/;

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
  return VALUE.test(value);
}
