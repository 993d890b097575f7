/**
 * Only scripts, styles and requests of this gateway; nothing inline, no plug-ins, no forms. `origins` may frame the page and
 * have images in it: those that a company lists for its portal; none for every other page.
 */
export function contentSecurityPolicy(origins: readonly string[] = []): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    ["img-src 'self' data:", ...origins].join(' '),
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    `frame-ancestors ${origins.length === 0 ? "'none'" : origins.join(' ')}`,
  ].join('; ');
}

/** Returns the headers of a page, which names its assets by their content and must never be an old one. */
export function pageHeaders(origins: readonly string[] = []): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': contentSecurityPolicy(origins),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
    // For browsers that do not know frame-ancestors. It cannot name origins.
    ...(origins.length === 0 && { 'X-Frame-Options': 'DENY' }),
  };
}
