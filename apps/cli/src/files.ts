import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { UsageFailure } from './failures.ts';

/* How the command reads files and standard input, and replaces files. */

/** Reads the bytes of a file as they are. Throws a UsageFailure when it cannot. */
export function readBytes(path: string, shownPath = path): Buffer {
  return withFile(shownPath, () => readFileSync(path));
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'you may not read it',
  EISDIR: 'it is a folder',
};

/** Returns what `read` returns. Throws a UsageFailure with the reason when the file cannot be read. */
export function withFile<T>(shownPath: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const code = codeOf(error);
    throw new UsageFailure(`${shownPath}: ${REASONS[code] ?? `it cannot be read (${code})`}`);
  }
}

/** Reads a text file, without its byte-order mark. Throws a UsageFailure when it cannot, and for bytes that are not UTF-8. */
export function readText(path: string, shownPath = path): string {
  return textOf(readBytes(path, shownPath), shownPath);
}

/** Returns the text of bytes that were read. Throws a UsageFailure that begins with `source` when they are not UTF-8. */
export function textOf(bytes: Uint8Array, source: string): string {
  const decoded = decodeText(bytes);
  if ('text' in decoded) return decoded.text;
  throw new UsageFailure(`${source} ${decoded.problem}`);
}

/** Text, or the predicate of a sentence about bytes that are none. */
export type Decoded = { text: string } | { problem: string };

const MARK = '\uFEFF';

/** Returns UTF-8 without the byte-order mark, which editors of Windows write before it. Other bytes would change as text. */
export function decodeText(bytes: Uint8Array): Decoded {
  const [first, second] = bytes;
  const isUtf16 = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  // What PowerShell 5 writes by default.
  if (isUtf16) return { problem: 'is UTF-16, not UTF-8: save it as UTF-8' };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { problem: 'is not UTF-8' };
  }
}

/** Whether a body that was saved has a byte-order mark before it. */
export const hasMark = (bytes: Uint8Array): boolean =>
  Buffer.from(MARK).equals(bytes.subarray(0, Buffer.byteLength(MARK)));

/** A link that leads to a link, and so on, is followed so far, as by Linux. */
const MAX_LINKS = 40;

/**
 * Replaces a file at once. A link stays as it is: the file that it leads to is replaced, or made. The file keeps its
 * mode unless one is given.
 *
 * Throws a UsageFailure when that cannot be, and for a link of another user, who would choose what is overwritten.
 */
export function replaceFile(path: string, text: string, mode?: number): void {
  try {
    const real = endOfLinks(path);
    // Never an existing file or link: in a folder for all, another user may have put one there.
    const temporary = `${real}.${randomUUID()}`;
    try {
      writeFileSync(temporary, text, { flag: 'wx', ...(mode !== undefined && { mode }) });
      const kept = mode ?? statSync(real, { throwIfNoEntry: false })?.mode;
      if (kept !== undefined) chmodSync(temporary, kept & 0o777);
      renameSync(temporary, real);
    } finally {
      rmSync(temporary, { force: true });
    }
  } catch (error) {
    if (error instanceof UsageFailure) throw error;
    throw new UsageFailure(`Cannot write ${path}: ${codeOf(error)}`);
  }
}

function endOfLinks(path: string): string {
  let file = path;
  for (let links = 0; links <= MAX_LINKS; links += 1) {
    // A link is relative to the folder in which it really is.
    const folder = realpathSync(dirname(file));
    file = join(folder, basename(file));
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (!found?.isSymbolicLink()) return file;
    if (!isOfThisUser(found)) {
      throw new UsageFailure(`${path} is a link of another user, and is not followed`);
    }
    file = resolve(folder, readlinkSync(file));
  }
  throw Object.assign(new Error('too many links'), { code: 'ELOOP' });
}

/** Whether a file belongs to this user or to root, who may do everything anyway. Windows has no such ids. */
export function isOfThisUser({ uid }: { uid: number }): boolean {
  const userId = process.getuid?.();
  return userId === undefined || uid === userId || uid === 0;
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? '';
