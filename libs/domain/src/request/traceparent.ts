/** The fields of version 00; a later version may have more behind them. */
const FIELDS =
  /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?=(-)|$)/;
const LINE_BREAK = /[\r\n]/;
const SAMPLED = 1;

/**
 * Returns a `traceparent` header in version 00 (W3C Trace Context, 3.2); undefined unless it is well formed. From a
 * later version it copies the ids and the sampled flag ("Versioning of traceparent").
 */
export function traceparentOf(text: string | undefined): string | undefined {
  if (text === undefined || LINE_BREAK.test(text)) return undefined;
  const [, version, ids = '', flags = '', more] = FIELDS.exec(text) ?? [];
  if (version === undefined) return undefined;
  if (version === '00') return more === undefined ? text : undefined;
  return `00-${ids}-0${Number.parseInt(flags, 16) & SAMPLED}`;
}
