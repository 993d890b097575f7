const BASE = /\s*<base\b[^>]*>/gi;
const HEAD = /<head\b[^>]*>/i;

/**
 * Returns the page with a `<base>` that leads from the address of the request to `/dashboard/`. It is relative, so that it
 * is right behind every path prefix of a proxy. `path` is as the client sent it, with `/dashboard` in front.
 */
export function pageText(page: string, path: string): string {
  return page.replaceAll(BASE, '').replace(HEAD, (head) => `${head}<base href="${baseOf(path)}">`);
}

/** Browsers resolve it against everything up to the last slash of the address. */
export function baseOf(path: string): string {
  const [, ...below] = path.slice(1).split('/');
  if (below.length === 0) return 'dashboard/';
  return '../'.repeat(below.length - 1) || './';
}
