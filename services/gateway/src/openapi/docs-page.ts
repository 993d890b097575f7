import { type RequestHandler, Router } from 'express';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { JsonSchema } from './json-schemas.ts';

const require = createRequire(import.meta.url);
const PACKAGE = require.resolve('swagger-ui-dist/package.json');
const { version } = require(PACKAGE) as { version: string };

const ASSETS = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};
/** Every address that `docsPage` serves. */
export const DOCS_PATHS = [
  '/openapi.json',
  '/docs',
  '/docs/start.js',
  ...Object.keys(ASSETS).map((name) => `/docs/${version}/${name}`),
];
const REVALIDATE = 'no-cache';
/** For addresses that contain the version: their content never changes. */
const ONE_YEAR = 'public, max-age=31536000, immutable';

/** Allows scripts, styles and requests of this gateway only. The icons of Swagger UI are `data:` images. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Serves the document at `/openapi.json`, and a page at `/docs` to read and try it. Neither needs an API key. */
export function docsPage(document: JsonSchema): Router {
  const router = Router();
  const add = (
    path: string,
    contentType: string,
    bytes: Buffer,
    cacheControl = REVALIDATE,
  ): void => {
    router.get(path, send(contentType, bytes, cacheControl));
  };
  add('/openapi.json', 'application/json', Buffer.from(JSON.stringify(document)));
  add('/docs', 'text/html; charset=utf-8', Buffer.from(pageText()));
  add('/docs/start.js', 'text/javascript; charset=utf-8', readFileSync(join(PAGE, 'start.js')));
  for (const [name, contentType] of Object.entries(ASSETS)) {
    const bytes = readFileSync(join(dirname(PACKAGE), name));
    add(`/docs/${version}/${name}`, contentType, bytes, ONE_YEAR);
  }
  return router;
}

const PAGE = join(import.meta.dirname, 'page');

function pageText(): string {
  return readFileSync(join(PAGE, 'index.html'), 'utf8').replaceAll('{{version}}', version);
}

function send(contentType: string, bytes: Buffer, cacheControl: string): RequestHandler {
  const headers = {
    'Content-Type': contentType,
    'Cache-Control': cacheControl,
    'Content-Security-Policy': CONTENT_SECURITY_POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
  };
  return (_request, response) => {
    response.set(headers).send(bytes);
  };
}
