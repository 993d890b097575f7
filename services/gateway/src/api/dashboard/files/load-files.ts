import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

export interface DashboardFile {
  contentType: string;
  bytes: Buffer;
  /** Null when it would hardly be smaller. */
  gzipped: Buffer | null;
}

/** The built dashboard, by path, such as `assets/index-1a2b3c.js`. */
export interface DashboardFiles {
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
