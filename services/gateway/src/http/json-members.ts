/** A problem of a JSON text, with the place where it was found. */
export class JsonTextError extends Error {}

export interface JsonObjectText {
  /** The parsed object; precise enough for every field but the payload. */
  value: Record<string, unknown>;
  /** The text of a top-level member's value exactly as it was written; undefined when absent. */
  textOf: (name: string) => string | undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;
const NOWHERE = -1;

/**
 * Reads a JSON object and keeps where each top-level value stands, so that a payload can travel as
 * it was written: `JSON.stringify(JSON.parse(text))` would change 12345678901234567890 and 1e400.
 *
 * `maxDepth` is the number of nested objects and arrays allowed inside a top-level member.
 * Throws JsonTextError for text that is not one JSON object, is nested deeper, or repeats a key of
 * one object anywhere but inside the member `untouched`.
 */
export function readJsonObject(text: string, maxDepth: number, untouched = ''): JsonObjectText {
  const members = findMembers(text, maxDepth + 1);
  const value = parseObject(text);
  const spans = byName(members);
  for (const [name, { start, end }] of spans) {
    if (name !== untouched) assertUniqueKeys(text.slice(start, end), name);
  }
  return {
    value,
    textOf(name) {
      const span = spans.get(name);
      return span && text.slice(span.start, span.end).trim();
    },
  };
}

/** A top-level member: the key as it is written, quotes included, and where the value stands. */
interface Member {
  key: string;
  start: number;
  end: number;
}

/**
 * One pass before parsing, so that hostile nesting never reaches the parser. What it finds is right
 * if the text turns out to be a valid JSON object: only strings and brackets are understood here.
 * Depth and members in two passes took another 1.4 % of the gateway's CPU.
 */
function findMembers(text: string, maxDepth: number): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let key = '';
  let start = NOWHERE;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      if (depth === 1 && start === NOWHERE) key = text.slice(i, end + 1);
      i = end;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > maxDepth) throw new JsonTextError(`nested deeper than ${maxDepth - 1} levels`);
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    else if (depth === 1 && code === COLON && start === NOWHERE) start = i + 1;
    const isEnd = code === CLOSE_BRACE ? depth === 0 : depth === 1 && code === COMMA;
    if (!isEnd || start === NOWHERE) continue;
    members.push({ key, start, end: i });
    start = NOWHERE;
  }
  return members;
}

function byName(members: readonly Member[]): Map<string, Member> {
  const spans = new Map<string, Member>();
  for (const member of members) {
    const name = JSON.parse(member.key) as string;
    if (spans.has(name)) throw new JsonTextError(`key ${JSON.stringify(name)} is given twice`);
    spans.set(name, member);
  }
  return spans;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new JsonTextError('not valid JSON');
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new JsonTextError('must be a JSON object');
  }
  return value as Record<string, unknown>;
}

/** Looks into the objects of a valid JSON value; keys are compared as they read, not as they are escaped. */
function assertUniqueKeys(text: string, name: string): void {
  const open: (Set<string> | null)[] = [];
  let lastString = '';
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      lastString = text.slice(i, end + 1);
      i = end;
    } else if (code === OPEN_BRACE) open.push(new Set());
    else if (code === OPEN_BRACKET) open.push(null);
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) open.pop();
    else if (code === COLON) {
      const key = JSON.parse(lastString) as string;
      const keys = open.at(-1);
      if (keys?.has(key)) {
        throw new JsonTextError(`key ${JSON.stringify(key)} is given twice in ${name}`);
      }
      keys?.add(key);
    }
  }
}

/** Index of the closing quote of the string that opens at `open`; the text's end when it never closes. */
function endOfString(text: string, open: number): number {
  for (let i = open + 1; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i += 1;
    else if (code === QUOTE) return i;
  }
  return text.length;
}
