const WELL_FORMED = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns a `traceparent` header (W3C Trace Context, 3.2); undefined unless it is well formed. */
export function traceparentOf(text: string | undefined): string | undefined {
  return text !== undefined && WELL_FORMED.test(text) ? text : undefined;
}
