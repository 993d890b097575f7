import type { Response } from 'express';
import { setImmediate as nextRound } from 'node:timers/promises';

/**
 * Sends the value as JSON, and returns the length of its text. A long one is made and written in pieces, over several
 * rounds of the event loop: a message to 10,000 webhooks has 1.2 MB, which take 5 ms and more in one piece. Nothing waits
 * for the client: what it has not taken yet is in the buffer of the response, as with `response.json`.
 */
export async function sendJson(response: Response, value: object): Promise<number> {
  response.type('json');
  if (charsUpTo(value, PIECE_CHARS) < PIECE_CHARS) {
    const text = JSON.stringify(value);
    response.send(text);
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

/** What stands around a field or an entry. */
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
  for (const [name, entry] of Object.entries(value)) {
    chars += name.length + FRAME_CHARS + charsUpTo(entry, limit - chars);
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
