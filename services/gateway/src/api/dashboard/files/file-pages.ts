import { extname } from 'node:path';
import { isId } from '@posthorn/domain/ids/ids.ts';
import { Router, type Request, type RequestHandler, type Response } from 'express';
import { ApiError } from '../../../http/api-error.ts';
import { refuseMethod } from '../../../http/refuse-method.ts';
import type { RequestDeadlines } from '../../../http/connections/request-deadlines.ts';
import type { DashboardFile, DashboardFiles } from './load-files.ts';
import { NOT_BUILT } from './not-built.ts';
import { pageHeaders } from './page-headers.ts';
import { isRefusedFrame, refusedFrame, REFUSED_FRAME_HEADERS } from './refused-frame.ts';
import { pageText } from './page-text.ts';

export interface FilePagesDeps {
  /** Null while nothing is built. */
  load: () => Promise<DashboardFiles | null>;
  /** The origins whose pages may frame the portal of a company; none for an unknown one. */
  originsOf: (companyId: string) => Promise<readonly string[]>;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

/** Everything of the dashboard but its sessions. */
export const DASHBOARD_PATHS = ['/dashboard', '/dashboard/', '/dashboard/*path'];

/** Names of these files contain a hash of their content. */
const ASSETS = 'assets/';
const ONE_YEAR = 'public, max-age=31536000, immutable';
const ONE_HOUR = 'public, max-age=3600';

/**
 * Serves the built dashboard. Every path without a file extension is a view of the one page, which asks for what it shows
 * by itself: so the page needs no session.
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
  for (const path of DASHBOARD_PATHS) {
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

/** Looks for a missing build again. A build that was found is kept until the process ends. */
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
  return new ApiError(404, 'route_not_found', `There is no ${method} ${path}.`);
}
