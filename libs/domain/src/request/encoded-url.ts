/** What may not be in a path or query (RFC 3986, 3.3 and 3.4), also a `%` that encodes nothing. */
const NOT_ALLOWED = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]|%(?![0-9A-Fa-f]{2})/g;

/**
 * Returns an http or https URL, without user and fragment, as it is stored, shown and sent. `URL` leaves some characters
 * as they are that servers such as Tomcat refuse: `|`, `^`, `{`, `[` and others in a query, `|` and `[` in a path.
 */
export function encodedUrl({ origin, pathname, search }: URL): string {
  return origin + (pathname + search).replace(NOT_ALLOWED, percentEncoded);
}

/** `URL` has encoded everything but ASCII. */
function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
