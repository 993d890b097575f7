import type { RequestHandler } from 'express';

/**
 * Responses may hold secrets, so nobody may keep them (RFC 9111, 5.2.2.5), and a browser must not guess
 * that JSON is something else.
 */
export const SECURITY_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
} as const;

/** Sets them on every response; a page that may be kept sets its own. */
export const setSecurityHeaders: RequestHandler = (_request, response, next) => {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  next();
};
