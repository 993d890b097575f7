import { decodeText } from '../files.ts';

/** The API accepts requests of 256 KiB. A longer line cannot be sent, and is not kept in memory. */
export const MAX_LINE_BYTES = 2 ** 20;

/** A line of the input, or why it cannot be read. */
export type Line = { number: number; text: string } | { number: number; problem: string };

const LINE_FEED = 10;

/**
 * Reads lines of UTF-8 one by one, only as fast as they are used. Empty lines are counted and left out. A line keeps all
 * its bytes but the line ending and a byte-order mark before it.
 */
export async function* readLines(source: AsyncIterable<unknown>): AsyncGenerator<Line> {
  let number = 1;
  let line = new PartialLine();
  for await (const each of source) {
    const chunk = Buffer.from(each as Uint8Array);
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      line.append(chunk.subarray(start, end));
      const finished = line.finish(number);
      if (finished) yield finished;
      line = new PartialLine();
      number += 1;
      start = end + 1;
    }
    line.append(chunk.subarray(start));
  }
  const last = line.finish(number);
  if (last) yield last;
}

class PartialLine {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  append(part: Buffer): void {
    this.#bytes += part.length;
    if (part.length > 0 && this.#bytes <= MAX_LINE_BYTES) this.#parts.push(part);
  }

  /** Returns null for an empty line. */
  finish(number: number): Line | null {
    if (this.#bytes > MAX_LINE_BYTES) {
      return { number, problem: `The line is longer than ${MAX_LINE_BYTES} bytes` };
    }
    const decoded = decodeText(Buffer.concat(this.#parts));
    if ('problem' in decoded) return { number, problem: `The line ${decoded.problem}` };
    const text = decoded.text.replace(/\r$/, '');
    return text === '' ? null : { number, text };
  }
}

/** Strings, then punctuation, then numbers and words. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gs;

/**
 * Returns the text of a field of a JSON object, byte for byte: parsed and written again, `1.0` would become `1`. Of
 * several with the same name, the last one counts, as in `JSON.parse`. `json` is the text of one object.
 */
export function rawFieldOf(json: string, name: string): string | undefined {
  return rawFieldsOf(json).findLast(([each]) => each === name)?.[1];
}

/** Returns the names and texts of all fields, in their order. */
export function rawFieldsOf(json: string): (readonly [name: string, text: string])[] {
  const fields: (readonly [name: string, text: string])[] = [];
  let depth = 0;
  let key = '';
  let valueStart: number | null = null;
  let before = { token: '', end: 0 };
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    const isEnd = (token === ',' && depth === 1) || (token === '}' && depth === 1);
    if (isEnd && valueStart !== null) fields.push([key, json.slice(valueStart, before.end)]);
    if (isEnd) valueStart = null;
    if (before.token === ':' && depth === 1) valueStart = index;
    if (token === ':' && depth === 1) key = JSON.parse(before.token) as string;
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    before = { token, end: index + token.length };
  }
  return fields;
}
