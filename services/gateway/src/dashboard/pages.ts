import { isId } from '@posthorn/domain/ids.ts';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { ApiError } from '../api-error.ts';
import { type KnownPage, refuseMethod } from '../http/known-routes.ts';
import type { RequestDeadlines } from '../http/request-deadlines.ts';
import { isListed, originOf } from '../keys/portal-links.ts';

interface FilePagesDeps {
  /** Null while nothing is built. */
  load: () => Promise<DashboardFiles | null>;
  /** The origins whose pages may frame the portal of a company; none for an unknown one. */
  originsOf: (companyId: string) => Promise<readonly string[]>;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

const PATHS = ['/dashboard', '/dashboard/', '/dashboard/*path'];

/** Everything of the dashboard but its sessions. */
export const DASHBOARD_PAGES: KnownPage[] = PATHS.map((path) => ({ path, methods: ['GET'] }));

/** Names of these files contain a hash of their content. */
const ASSETS = 'assets/';
const ONE_YEAR = 'public, max-age=31536000, immutable';
const ONE_HOUR = 'public, max-age=3600';

/**
 * Serves the built dashboard. Every path without a file extension is a view of the one page, which reads its
 * data from the API: so the page itself needs no session.
 */
export function filePages(deps: FilePagesDeps): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const load = keepOnceFound(deps.load);
  const serve: RequestHandler = async (request, response) => {
    const path = request.path.slice('/dashboard/'.length);
    if (path.startsWith('api/')) throw notFound(request);
    const built = await load();
    if (extname(path) !== '') {
      sendFile(request, response, built?.files.get(path), path);
      return;
    }
    const origins = await deps.deadlines.within(response, framedBy(deps, path));
    const referrer = request.get('referer');
    if (isRefusedFrame({ destination: request.get('sec-fetch-dest'), referrer }, origins)) {
      response.status(403).set(REFUSED_FRAME_HEADERS).send(refusedFrame(referrer));
      return;
    }
    const headers = pageHeaders(origins);
    if (built) response.set(headers).send(pageText(built.page, request.path));
    else response.status(404).set(headers).send(NOT_BUILT);
  };
  for (const path of PATHS) {
    router.get(path, serve);
    router.all(path, refuseMethod(['GET']));
  }
  return router;
}

const PORTAL = /^portal\/(?<companyId>[^/]+)/;

async function framedBy({ originsOf }: FilePagesDeps, path: string): Promise<readonly string[]> {
  const { companyId = '' } = PORTAL.exec(path)?.groups ?? {};
  return isId('comp', companyId) ? originsOf(companyId) : [];
}

/** Searches for a missing build again at each request, and keeps a build until the process ends. */
function keepOnceFound(load: FilePagesDeps['load']): FilePagesDeps['load'] {
  let found: Promise<DashboardFiles | null> | null = null;
  return async () => {
    found ??= load();
    const files = await found.catch((error: unknown) => {
      found = null;
      throw error;
    });
    if (!files) found = null;
    return files;
  };
}

function sendFile(
  request: Request,
  response: Response,
  file: DashboardFile | undefined,
  path: string,
): void {
  if (!file) throw notFound(request);
  const { contentType, bytes, gzipped } = file;
  response.set({
    'Content-Type': contentType,
    'Cache-Control': path.startsWith(ASSETS) ? ONE_YEAR : ONE_HOUR,
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Cross-Origin-Resource-Policy': 'same-origin',
    Vary: 'Accept-Encoding',
  });
  if (gzipped && request.acceptsEncodings('gzip')) {
    response.set('Content-Encoding', 'gzip').send(gzipped);
  } else {
    response.send(bytes);
  }
}

function notFound({ method, path }: Request): ApiError {
  return new ApiError('route_not_found', `There is no ${method} ${path}.`);
}

interface DashboardFile {
  contentType: string;
  bytes: Buffer;
  /** Null when it would hardly be smaller. */
  gzipped: Buffer | null;
}

/** The built dashboard, by path, such as `assets/index-1a2b3c.js`. */
interface DashboardFiles {
  /** The page, whose `<base>` is replaced when it is sent. */
  page: string;
  files: ReadonlyMap<string, DashboardFile>;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};
const OTHER = 'application/octet-stream';
const PAGE = 'index.html';

/** These formats are compressed already. */
const NOT_GZIPPED = new Set(['.png', '.webp', '.woff2']);
const compress = promisify(gzip);

/**
 * Reads the whole folder, so that a later build cannot mix its files with those of this one: 2 MB, and a third of
 * it compressed. Returns null when there is no page.
 */
export async function loadFiles(folder: string): Promise<DashboardFiles | null> {
  const page = await readFile(join(folder, PAGE), 'utf8').catch(nullIfMissing);
  if (page === null) return null;
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => path !== PAGE);
  const files = await Promise.all(
    paths.map(async (path) => [path, await load(folder, path)] as const),
  );
  return { page, files: new Map(files) };
}

async function load(folder: string, path: string): Promise<DashboardFile> {
  const extension = extname(path);
  const bytes = await readFile(join(folder, path));
  const contentType = CONTENT_TYPES[extension] ?? OTHER;
  return { contentType, bytes, gzipped: NOT_GZIPPED.has(extension) ? null : await compress(bytes) };
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/** Shown in place of the dashboard: in a checkout the build is not part of it. */
const NOT_BUILT = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>The dashboard is not built</title>
  </head>
  <body>
    <h1>The dashboard is not built</h1>
    <p>Run <code>npm run dashboard:build</code> and load this page again. <code>npm start</code> does it by itself.</p>
    <p>The API works without it: see <code>/docs</code>.</p>
  </body>
</html>
`;

/**
 * Only scripts, styles and requests of this gateway; nothing inline, no plug-ins, no forms. `origins` may frame the page and
 * have images in it: the origins that a company lists for its portal; none for every other page.
 */
function contentSecurityPolicy(origins: readonly string[] = []): string {
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
function pageHeaders(origins: readonly string[] = []): Record<string, string> {
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

interface FrameRequest {
  /** `Sec-Fetch-Dest`: what the browser asks the page for. Browsers send it over https and to loopback. */
  destination: string | undefined;
  /** `Referer`: the page that asked, which is the one around the frame, or one that was in the frame before. */
  referrer: string | undefined;
}

const FRAMES = ['iframe', 'frame', 'embed', 'object'];

/**
 * Returns whether the page is requested for a frame of an origin that is not listed. False when the browser does not
 * name the origin: then it refuses by `frame-ancestors` itself, with a page of its own. A site that leads to the portal
 * within the frame of a listed one must be listed too.
 */
export function isRefusedFrame(
  { destination = '', referrer }: FrameRequest,
  origins: readonly string[],
): boolean {
  if (!FRAMES.includes(destination)) return false;
  if (origins.length === 0) return true;
  const origin = originOf(referrer ?? '');
  return origin !== null && !isListed(origin, origins);
}

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (each) => ESCAPED[each] ?? each);

/** It may be framed by anyone, so that people see why they do not see the page: it shows nothing of any company. */
const REFUSED_FRAME_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  Vary: 'Sec-Fetch-Dest, Referer',
};

/** The page in place of one that may not be shown in this frame. */
export function refusedFrame(referrer: string | undefined): string {
  const site = escapeHtml(originOf(referrer ?? '') ?? 'The page around this frame');
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <meta name="color-scheme" content="light dark">
    <title>Not in this frame</title>
  </head>
  <body>
    <h1>This page may not be shown in this frame</h1>
    <p><strong>${site}</strong> is not one of the origins that may show it.</p>
    <p>A portal is shown by the origins in the portal settings of its company: an operator adds one with
    <code>PUT /api/v1/portal-settings</code>, or on the page “Projects and apps” of the dashboard. The dashboard itself
    is shown in no frame: open it in a window of its own.</p>
  </body>
</html>
`;
}
