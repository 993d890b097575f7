const WELL_FORMED = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The header of W3C Trace Context, section 3.2; what is not well formed is ignored. */
export function traceparentOf(text: string | undefined): string | undefined {
  return text !== undefined && WELL_FORMED.test(text) ? text : undefined;
}
