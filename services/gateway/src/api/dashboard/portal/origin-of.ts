/**
 * Returns the origin of a URL, without the port that its scheme has anyway. Null for what has none, such as a text that
 * is no URL, or one of a port that an earlier version allowed.
 */
export function originOf(url: string): string | null {
  const origin = URL.parse(url)?.origin ?? 'null';
  return origin === 'null' ? null : origin;
}

/** True when one of the listed URLs has this origin. */
export function isListed(origin: string, listed: readonly string[]): boolean {
  return listed.some((url) => originOf(url) === origin);
}
