/** A text that is not an acceptable JSON object; the message says why. */
export class InvalidJsonError extends Error {
  /** The member that is wrong; '' for the object as a whole, null for a text that is no JSON. */
  readonly path: string | null;

  constructor(message: string, path: string | null = '') {
    super(message);
    this.path = path;
  }
}

/** No request has as many members. To parse 24,000 would block the process for 130 to 270 ms. */
export const MAX_MEMBERS = 100;

/** The object has more members; nothing of it is parsed. */
export class TooManyMembersError extends Error {}

export interface ParsedJsonObject {
  /** The parsed object. Numbers may lose precision, which matters for the payload only. */
  value: Record<string, unknown>;
  /** Returns the text of a top-level value exactly as it was written; undefined when it is absent. */
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
const NOT_FOUND = -1;

/**
 * Parses a JSON object and remembers the position of each top-level value, so that a payload can be
 * delivered as it was written: `JSON.stringify(JSON.parse(text))` would change 12345678901234567890 and
 * 1e400.
 *
 * `maxDepth` is the number of nested objects and arrays allowed inside a top-level value.
 * Throws TooManyMembersError, and InvalidJsonError if the text is not one JSON object, is nested deeper, or has an object with a
 * duplicate key. Duplicate keys are allowed inside the member named `untouched`.
 */
export function parseJsonObject(text: string, maxDepth: number, untouched = ''): ParsedJsonObject {
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

/**
 * Checks a text that is delivered as it is. Throws InvalidJsonError unless it is one JSON object with at most `maxDepth`
 * levels of objects and arrays, itself included. Duplicate keys are allowed in it.
 */
export function assertJsonObject(text: string, maxDepth: number): void {
  assertDepth(text, maxDepth);
  parseObject(text);
}

/** Scans the text before it is parsed, as `findMembers` does. */
function assertDepth(text: string, maxDepth: number): void {
  let depth = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > maxDepth) throw new InvalidJsonError(`nested deeper than ${maxDepth} levels`);
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
  }
}

/** A top-level member: the key as it is written, with its quotes, and the position of its value. */
interface Member {
  key: string;
  start: number;
  end: number;
}

/**
 * Scans the text before it is parsed, so that hostile nesting never reaches the parser. Understands
 * strings and brackets only: the result is correct if the text turns out to be a valid JSON object.
 * Finds depth and members in one pass; two passes took another 1.4 % of the gateway's CPU.
 */
function findMembers(text: string, maxDepth: number): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let key = '';
  let start = NOT_FOUND;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      if (depth === 1 && start === NOT_FOUND) key = text.slice(i, end + 1);
      i = end;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > maxDepth) throw tooDeep(maxDepth - 1, key);
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    else if (depth === 1 && code === COLON && start === NOT_FOUND) start = i + 1;
    const isEnd = code === CLOSE_BRACE ? depth === 0 : depth === 1 && code === COMMA;
    if (!isEnd || start === NOT_FOUND) continue;
    members.push({ key, start, end: i });
    if (members.length > MAX_MEMBERS) throw new TooManyMembersError();
    start = NOT_FOUND;
  }
  return members;
}

function tooDeep(levels: number, key: string): InvalidJsonError {
  return new InvalidJsonError(`nested deeper than ${levels} levels`, key.slice(1, -1));
}

function byName(members: readonly Member[]): Map<string, Member> {
  const spans = new Map<string, Member>();
  for (const member of members) {
    const name = JSON.parse(member.key) as string;
    if (spans.has(name)) {
      throw new InvalidJsonError(`key ${JSON.stringify(name)} is given twice`, name);
    }
    spans.set(name, member);
  }
  return spans;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new InvalidJsonError('not valid JSON', null);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw notAnObject();
  }
  return value as Record<string, unknown>;
}

const notAnObject = (): InvalidJsonError => new InvalidJsonError('must be a JSON object');

/** Checks every object in a valid JSON value. Compares keys after resolving their escapes. */
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
        throw new InvalidJsonError(`key ${JSON.stringify(key)} is given twice in ${name}`, name);
      }
      keys?.add(key);
    }
  }
}

/** Returns the index of the closing quote of the string that opens at `open`; the length of the text if there is none. */
function endOfString(text: string, open: number): number {
  for (let i = open + 1; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i += 1;
    else if (code === QUOTE) return i;
  }
  return text.length;
}

/** A JSON object whose lists were taken out. */
interface SplitJson {
  /** The text with a number in place of each entry of a list, and nothing within the objects. */
  frame: Buffer;
  /** The bytes of the entries without the spaces around them, in order. */
  entries: Buffer[];
}

const COMMA_BYTES = Buffer.from(',');
const ENTRY_BYTES = Buffer.from('0');
const BLANK: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Divides the text of a JSON object at the entries of the lists that are its members, so that a list of a megabyte can be
 * parsed entry by entry. The whole is valid JSON if the frame is and every entry, because each stands alone between two
 * brackets or commas. Understands strings and brackets only, which takes 1.5 ms for a megabyte; a byte of UTF-8 beyond ASCII
 * is never one of them. Stops after one entry more than `maxEntries`.
 *
 * Throws TooManyMembersError, or InvalidJsonError for a list, at more than 100 lists and objects directly in the whole: a
 * megabyte of `[[],[],…]` would take 90 ms and 100 MB, a buffer for each of 350,000.
 */
export function splitJsonLists(bytes: Buffer, maxEntries: number): SplitJson {
  const [frame, entries]: [Buffer[], Buffer[]] = [[], []];
  let depth = 0;
  let isInList = false;
  let isObject = false;
  let members = 0;
  /** Where the part that is not in one of them yet begins. */
  let start = 0;
  for (let i = 0; i < bytes.length && entries.length <= maxEntries; i += 1) {
    const code = bytes[i];
    if (code === QUOTE) i = endOfStringIn(bytes, i);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth === 1) isObject = code === OPEN_BRACE;
      if (depth !== 2) continue;
      members += 1;
      if (members > MAX_MEMBERS) throw isObject ? new TooManyMembersError() : notAnObject();
      isInList = code === OPEN_BRACKET;
      frame.push(bytes.subarray(start, i + 1));
      start = i + 1;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth !== 1) continue;
      const last = withoutBlanks(bytes.subarray(start, i));
      const isEmpty = last.length === 0 && frame.at(-1) !== COMMA_BYTES;
      if (isInList && !isEmpty) {
        frame.push(ENTRY_BYTES);
        entries.push(last);
      }
      start = i;
    } else if (code === COMMA && depth === 2 && isInList) {
      frame.push(ENTRY_BYTES, COMMA_BYTES);
      entries.push(withoutBlanks(bytes.subarray(start, i)));
      start = i + 1;
    }
  }
  frame.push(bytes.subarray(depth < 2 ? start : bytes.length));
  return { frame: Buffer.concat(frame), entries };
}

function withoutBlanks(bytes: Buffer): Buffer {
  let [start, end] = [0, bytes.length];
  while (start < end && BLANK.has(bytes[start])) start += 1;
  while (end > start && BLANK.has(bytes[end - 1])) end -= 1;
  return bytes.subarray(start, end);
}

function endOfStringIn(bytes: Buffer, open: number): number {
  for (let i = open + 1; i < bytes.length; i += 1) {
    const code = bytes[i];
    if (code === BACKSLASH) i += 1;
    else if (code === QUOTE) return i;
  }
  return bytes.length;
}
