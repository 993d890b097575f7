import type { Response } from 'express';
import { once } from 'node:events';
import { setImmediate as nextRound } from 'node:timers/promises';

/**
 * Sends the value as JSON, and returns the length of its text. A long one is made and written in pieces, over several
 * rounds of the event loop: a message to 10,000 webhooks has 1.2 MB, which take 5 ms and more in one piece. Nothing waits
 * for the client: the part that it has not received yet is in the buffer of the response, as with `response.json`.
 */
export async function sendJson(response: Response, value: object): Promise<number> {
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  if (charsUpTo(value, PIECE_CHARS) < PIECE_CHARS) {
    const text = JSON.stringify(value);
    response.setHeader('Content-Length', Buffer.byteLength(text));
    // With the text as it is, Node writes head and body at once; `response.send` makes two buffers of them.
    response.end(text);
    return text.length;
  }
  let length = 0;
  let text = '';
  for (const piece of jsonPieces(value)) {
    length += piece.length;
    text += piece;
    if (text.length < PIECE_CHARS) continue;
    if (response.destroyed) return length;
    response.write(text);
    text = '';
    await nextRound();
  }
  response.end(text);
  return length;
}

/** JSON of so many characters takes half a millisecond. */
export const PIECE_CHARS = 65_536;

/** The text around a field or an entry. */
const FRAME_CHARS = 4;
const NUMBER_CHARS = 8;

/** Returns about how many characters the JSON of the value has, or more than `limit` for one that has more. */
export function charsUpTo(value: unknown, limit: number): number {
  if (typeof value === 'string') return value.length + FRAME_CHARS;
  if (typeof value !== 'object' || value === null) return NUMBER_CHARS;
  let chars = FRAME_CHARS;
  // Not `for … in` for a list: it makes a text of each index, which was 4 % of the CPU time of a gateway.
  if (Array.isArray(value)) {
    for (const entry of value as unknown[]) {
      chars += FRAME_CHARS + charsUpTo(entry, limit - chars);
      if (chars > limit) break;
    }
    return chars;
  }
  // Entries of an object would be a list for each field: 4 % of what the gateway allocated.
  const fields = value as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    chars += name.length + FRAME_CHARS + charsUpTo(fields[name], limit - chars);
    if (chars > limit) break;
  }
  return chars;
}

/** Yields the JSON of a value in pieces of about PIECE_CHARS, or fewer. A text is never divided. */
export function* jsonPieces(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null || charsUpTo(value, PIECE_CHARS) < PIECE_CHARS) {
    yield JSON.stringify(value);
  } else if (Array.isArray(value)) {
    yield* piecesOfList(value);
  } else {
    yield* piecesOfObject(value as Record<string, unknown>);
  }
}

function* piecesOfObject(value: Record<string, unknown>): Generator<string> {
  let before = '{';
  for (const [name, entry] of Object.entries(value)) {
    if (entry === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    yield* jsonPieces(entry);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

/** Short entries are written together. */
function* piecesOfList(value: readonly unknown[]): Generator<string> {
  let before = '[';
  let short: unknown[] = [];
  let chars = 0;
  for (const entry of value) {
    const own = charsUpTo(entry, PIECE_CHARS);
    if (short.length > 0 && chars + own >= PIECE_CHARS) {
      yield before + JSON.stringify(short).slice(1, -1);
      [before, short, chars] = [',', [], 0];
    }
    if (own < PIECE_CHARS) {
      short.push(entry);
      chars += own;
      continue;
    }
    yield before;
    yield* jsonPieces(entry);
    before = ',';
  }
  if (short.length > 0) yield before + JSON.stringify(short).slice(1, -1);
  yield before === '[' && short.length === 0 ? '[]' : ']';
}

/** The parts of a list, in order. */
export type Pages = AsyncIterable<readonly unknown[]>;

/** Returns the object that has these fields in an object which is the last value of it. */
export type Frame = (fields: Readonly<Record<string, unknown>>) => object;

/** Returns the whole object. Each entry is a name with its value. */
export function framed(frame: Frame, entries: readonly unknown[]): object {
  return frame(Object.fromEntries(entries as [string, unknown][]));
}

interface PagesSpec {
  status: number;
  message: string;
  frame?: Frame | undefined;
}

/** The text before the entries, of each of them, and after them. */
function textsOf(frame: Frame | undefined) {
  if (!frame) return { before: '[', textOf: JSON.stringify, after: ']' };
  const text = JSON.stringify(frame({}));
  const place = text.lastIndexOf('{}') + 1;
  const textOf = (entry: unknown): string => {
    const [name, value] = entry as [string, unknown];
    return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  };
  return { before: text.slice(0, place), textOf, after: text.slice(place) };
}

/**
 * Sends a list part by part, as one array or within the object of a frame. The next part is read when the client
 * has taken the one before, so a list of any length needs the memory of one part. Rejects when a part cannot be read.
 * `onSent` is called with the length of each part.
 */
export async function sendPages(
  response: Response,
  { status, message, frame }: PagesSpec,
  pages: Pages,
  onSent: (length: number) => void,
): Promise<void> {
  const { before, textOf, after } = textsOf(frame);
  response.status(status).type('json');
  response.write(`{"success":true,"message":${JSON.stringify(message)},"data":${before}`);
  let separator = '';
  for await (const page of pages) {
    if (response.destroyed) return;
    const text = page.map((each) => textOf(each)).join(',');
    if (text === '') continue;
    onSent(text.length);
    if (!response.write(separator + text)) await untilTaken(response);
    separator = ',';
  }
  response.end(`${after}}`);
}

/** Resolves when the client has received the written bytes, or is gone. */
async function untilTaken(response: Response): Promise<void> {
  const ended = new AbortController();
  const either = ['drain', 'close'].map((event) => once(response, event, { signal: ended.signal }));
  try {
    if (!response.destroyed) await Promise.race(either);
  } finally {
    ended.abort();
    await Promise.allSettled(either);
  }
}

/** So many entries are an ordinary response: 1 MB of the widest webhooks. */
const SHORT_LIST = 25;

/** Reads until it is known whether the list is a short one. That is an ordinary response. */
export async function beginPages(
  pages: Pages,
): Promise<{ first: readonly unknown[]; rest: Pages | null }> {
  const reading = pages[Symbol.asyncIterator]();
  const first: unknown[] = [];
  while (first.length <= SHORT_LIST) {
    const next = await reading.next();
    if (next.done) return { first, rest: null };
    first.push(...next.value);
  }
  return { first, rest: continued(first, reading) };
}

async function* continued(
  first: readonly unknown[],
  reading: AsyncIterator<readonly unknown[]>,
): AsyncGenerator<readonly unknown[]> {
  try {
    yield first;
    for (let next = await reading.next(); !next.done; next = await reading.next()) yield next.value;
  } finally {
    await reading.return?.();
  }
}

interface LongList<Found, Shown> {
  describe: (found: Found) => Shown;
  /** Of two parts, as objects and as text, at most. */
  bytes: number;
  /** Counts the bytes for this request. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
}

/** Describes the entries of each part. Memory is reserved when the list turns out to be a long one. */
export async function* describeParts<Found, Shown>(
  parts: AsyncIterable<Found[]>,
  { describe, bytes, reserve }: LongList<Found, Shown>,
): AsyncGenerator<Shown[]> {
  let read = 0;
  for await (const part of parts) {
    const isLongNow = read <= SHORT_LIST && read + part.length > SHORT_LIST;
    if (isLongNow) reserve(bytes);
    read += part.length;
    yield part.map(describe);
  }
}
