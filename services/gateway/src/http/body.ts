import { MAX_BODY_BYTES, MAX_PAYLOAD_DEPTH } from '@posthorn/domain/message.ts';
import {
  type ByteCollector,
  createByteCollector,
} from '@posthorn/platform/memory/byte-collector.ts';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { ApiError, invalidRequest, MAX_PROBLEMS, overloaded, type Problem } from '../api-error.ts';
import {
  InvalidJsonError,
  MAX_MEMBERS,
  type ParsedJsonObject,
  parseJsonObject,
  splitJsonLists,
  TooManyMembersError,
} from './parse-json-object.ts';
import type { NextSlice } from '../limits/slices.ts';
import type { RequestMemory } from './request-memory.ts';
import type { Body, Route } from './route.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = '\ufeff';

/**
 * Parses and validates a body. Throws ApiError 400 with every problem, `earlier` ones included: those that
 * were found outside the body.
 */
export function readBody<Schema extends z.ZodObject>(
  bytes: Buffer,
  schema: Schema,
  earlier: readonly Problem[] = [],
): Body<z.infer<Schema>> {
  const { body, problems } = checkObject(bytes, schema, readObject(decode(bytes)));
  if (body === null || problems.length + earlier.length > 0)
    throw invalidRequest([...earlier, ...problems]);
  return body;
}

function checkObject<Schema extends z.ZodObject>(
  bytes: Buffer,
  schema: Schema,
  { value: members, textOf }: ParsedJsonObject,
): { body: Body<z.infer<Schema>> | null; problems: Problem[] } {
  const checked = checkFields(members, schema, 'is not a field of this request');
  const { value, writtenAs } = checked;
  const problems = [...checked.problems, ...illFormedTexts(members)];
  if (value === null || problems.length > 0) return { body: null, problems };
  const body = {
    value,
    bytes,
    textOf: (name: string) => textOf(writtenAs.get(name) ?? name),
    as: <Part extends z.ZodObject>(other: Part) => readPart(members, schema, other),
  };
  return { body, problems };
}

/** A body that is an object with one list. */
interface ListSpec<Schema extends z.ZodObject> {
  name: string;
  maxEntries: number;
  schema: Schema;
  /** The field of an entry whose length only this bounds. */
  large: { field: string; maxBytes: number };
}

interface ReadListContext<Schema extends z.ZodObject, Entry> {
  /** Problems that were found outside the body. */
  earlier: readonly Problem[];
  nextSlice: NextSlice;
  /** Returns the part of an entry that is kept. */
  toEntry: (body: Body<z.infer<Schema>>, index: number) => Entry;
}

/** Reads a list entry by entry. Throws ApiError 400 with every problem of every entry, up to 100. */
type ReadList<Schema extends z.ZodObject> = <Entry>(
  bytes: Buffer,
  context: ReadListContext<Schema, Entry>,
) => Promise<Entry[]>;

/** The part that is read in one turn: about a millisecond. */
const SLICE = { bytes: 65_536, entries: 64 };
/** The other fields of an entry, and what is around them. */
const OTHER_FIELDS_BYTES = 16_384;

/**
 * A megabyte of entries is read in slices, because to parse and check it keeps the process busy for 15 to 30 ms. One entry
 * at a time is in memory as parsed objects, which may take ten times the memory of their text.
 */
export function createReadList<Schema extends z.ZodObject>(
  spec: ListSpec<Schema>,
): ReadList<Schema> {
  const { name, maxEntries } = spec;
  const frameSchema = z.object({
    [name]: z.array(z.unknown(), 'must be a list').min(1, 'must have at least one entry'),
  });
  return async <Entry>(
    bytes: Buffer,
    { earlier, nextSlice, toEntry }: ReadListContext<Schema, Entry>,
  ) => {
    const { frame, entries } = readJson(() => splitJsonLists(bytes, maxEntries));
    if (entries.length > maxEntries) {
      throw invalidRequest([{ path: name, message: `must have at most ${maxEntries} entries` }]);
    }
    const framed = checkObject(frame, frameSchema, readObject(decode(frame)));
    const problems = [...earlier, ...framed.problems];
    if (framed.body === null) throw invalidRequest(problems);
    const read: Entry[] = [];
    let slice = { bytes: 0, entries: 0 };
    for (const [index, entry] of entries.entries()) {
      if (slice.bytes >= SLICE.bytes || slice.entries >= SLICE.entries) {
        await nextSlice();
        slice = { bytes: 0, entries: 0 };
      }
      slice = { bytes: slice.bytes + entry.length, entries: slice.entries + 1 };
      const checked = checkEntry(spec, entry, `${name}.${index}`);
      if (checked.body && problems.length === 0) read.push(toEntry(checked.body, index));
      problems.push(...checked.problems);
      if (problems.length >= MAX_PROBLEMS) break;
    }
    if (problems.length > 0) throw invalidRequest(problems);
    return read;
  };
}

interface CheckedEntry<Schema extends z.ZodObject> {
  body: Body<z.infer<Schema>> | null;
  problems: Problem[];
}

function checkEntry<Schema extends z.ZodObject>(
  { schema, large }: ListSpec<Schema>,
  bytes: Buffer,
  path: string,
): CheckedEntry<Schema> {
  const { field, maxBytes } = large;
  const tooLong = {
    body: null,
    problems: [{ path: `${path}.${field}`, message: `has more than ${maxBytes} bytes` }],
  };
  if (bytes.length > maxBytes + OTHER_FIELDS_BYTES) return tooLong;
  const parsed = parseEntry(bytes, path);
  if ('message' in parsed) return { body: null, problems: [parsed] };
  const checked = checkObject(bytes, schema, parsed);
  const text = bytes.length > maxBytes ? (checked.body?.textOf(field) ?? '') : '';
  if (Buffer.byteLength(text) > maxBytes) return tooLong;
  const problems = checked.problems.map((each) => ({ ...each, path: join(path, each.path) }));
  return { ...checked, problems };
}

/** Throws ApiError 400 for an entry that is no JSON: then the body is not. */
function parseEntry(bytes: Buffer, path: string): ParsedJsonObject | Problem {
  try {
    return parseJsonObject(decode(bytes), MAX_PAYLOAD_DEPTH, 'payload');
  } catch (error) {
    if (error instanceof TooManyMembersError) return { path, message: TOO_MANY_FIELDS.message };
    if (!(error instanceof InvalidJsonError)) throw error;
    const { message } = error;
    if (error.path === null) throw invalidJson(`${message} in ${path}`);
    return { path: join(path, error.path), message: `is not acceptable: ${message}` };
  }
}

const join = (...names: string[]): string => names.filter((name) => name !== '').join('.');

function readPart<Part extends z.ZodObject>(
  members: Record<string, unknown>,
  whole: z.ZodObject,
  part: Part,
): z.infer<Part> {
  const fields = Object.entries(rawFields(members, whole)).filter(([name]) => name in part.shape);
  const { value, problems } = checkFields(Object.fromEntries(fields), part, '');
  if (value === null) throw invalidRequest(problems);
  return value;
}

/** Returns the fields without validation. Throws ApiError 400 if the body is not a JSON object. */
export function readRawFields(bytes: Buffer, schema: z.ZodObject): Record<string, unknown> {
  return rawFields(readObject(decode(bytes)).value, schema);
}

/** The store would replace half of a surrogate pair by another character. The payload is exempt: its bytes are kept. */
function illFormedTexts(members: Record<string, unknown>): Problem[] {
  const fields = Object.entries(members).filter(([name]) => name !== 'payload');
  return fields.flatMap(([path, value]) => illFormedIn(value, path));
}

/** A body is at most 64 levels deep (MAX_PAYLOAD_DEPTH). */
function illFormedIn(value: unknown, path: string): Problem[] {
  if (typeof value === 'string') {
    return value.isWellFormed() ? [] : [{ path, message: 'contains half of a surrogate pair' }];
  }
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, each]) => illFormedIn(each, `${path}.${name}`));
}

function decode(bytes: Buffer): string {
  try {
    const text = UTF8.decode(bytes);
    if (!text.startsWith(BYTE_ORDER_MARK)) return text;
  } catch {
    throw new ApiError('invalid_json', 'The body is not valid UTF-8.');
  }
  throw new ApiError('invalid_json', 'The body starts with a byte-order mark. Leave it out.');
}

function readObject(text: string): ParsedJsonObject {
  return readJson(() => parseJsonObject(text, MAX_PAYLOAD_DEPTH, 'payload'));
}

/** Throws ApiError 400 when `read` refuses the body. */
function readJson<Read>(read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    if (error instanceof TooManyMembersError) throw invalidRequest([TOO_MANY_FIELDS]);
    if (!(error instanceof InvalidJsonError)) throw error;
    throw invalidJson(error.message);
  }
}

function invalidJson(why: string): ApiError {
  return new ApiError('invalid_json', `The body is not acceptable: ${why}.`);
}

const TOO_MANY_FIELDS: Problem = {
  path: '',
  message: `must have at most ${MAX_MEMBERS} fields`,
};

interface CheckedFields<T> {
  /** Null when there are problems. */
  value: T | null;
  problems: Problem[];
  /** The key that the client used, by field name. */
  writtenAs: ReadonlyMap<string, string>;
}

/**
 * Validates the members of a body or query string. Keys may be written in camelCase or snake_case. Unknown
 * keys and two spellings of one key with different values are problems. Returns every problem, not only
 * the first. `unknownMessage` is the message for an unknown key.
 */
function checkFields<Schema extends z.ZodObject>(
  members: Record<string, unknown>,
  schema: Schema,
  unknownMessage: string,
): CheckedFields<z.infer<Schema>> {
  if (Object.keys(members).length > MAX_MEMBERS) {
    return { value: null, problems: [TOO_MANY_FIELDS], writtenAs: new Map() };
  }
  const problems: Problem[] = [];
  const { fields, writtenAs } = inCamelCase(members, new Set(Object.keys(schema.shape)), problems);
  const result = strictOf(schema).safeParse(fields, { reportInput: true });
  if (!result.success) {
    problems.push(...result.error.issues.flatMap((issue) => problemsOf(issue, unknownMessage)));
  }
  const isGood = result.success && problems.length === 0;
  return { value: isGood ? (result.data as z.infer<Schema>) : null, problems, writtenAs };
}

const strictSchemas = new WeakMap<z.ZodObject, z.ZodObject>();

/**
 * Creates each strict schema once: zod compiles a schema at its first use, which took 60 µs of every request instead of
 * 3.
 */
function strictOf(schema: z.ZodObject): z.ZodObject {
  const known = strictSchemas.get(schema);
  if (known) return known;
  const strict = schema.strict();
  strictSchemas.set(schema, strict);
  return strict;
}

/** Returns the members under their camelCase names, without validation. */
function rawFields(members: Record<string, unknown>, schema: z.ZodObject): Record<string, unknown> {
  return inCamelCase(members, new Set(Object.keys(schema.shape)), []).fields;
}

function inCamelCase(
  members: Record<string, unknown>,
  known: ReadonlySet<string>,
  problems: Problem[],
): { fields: Record<string, unknown>; writtenAs: Map<string, string> } {
  const fields = Object.create(null) as Record<string, unknown>;
  const writtenAs = new Map<string, string>();
  for (const [key, member] of Object.entries(members)) {
    const name = known.has(key) ? key : camelCase(key);
    const field = known.has(name) ? name : key;
    if (field in fields && JSON.stringify(fields[field]) !== JSON.stringify(member)) {
      problems.push({
        path: field,
        message: `is given as ${writtenAs.get(field) ?? field} and as ${key}, with different values`,
      });
    }
    fields[field] = member;
    writtenAs.set(field, key);
  }
  return { fields, writtenAs };
}

function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function problemsOf(issue: z.core.$ZodIssue, unknownMessage: string): Problem[] {
  const at = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...at, key].join('.'), message: unknownMessage }));
  }
  return [{ path: at.join('.'), message: messageOf(issue) }];
}

function messageOf({ code, input, path, message }: z.core.$ZodIssue): string {
  if (code === 'invalid_type' && input === undefined) return 'is required';
  // Null takes a field away (docs/contract.md C1.13): this one stays.
  return input === null && path.length === 1 ? 'is required, so it cannot be null' : message;
}

/** The parts of a request besides its path and body. */
export interface RequestHead {
  /** The query string as it was received, without the question mark. */
  queryText: string;
  header: (name: string) => string | undefined;
}

interface ParsedHead {
  query: Record<string, unknown>;
  problems: Problem[];
}

/**
 * Parses and validates query parameters and headers; `companyid` is required on some routes
 * (docs/contract.md C4.3). Unknown parameters are refused: a misspelled filter must not match everything.
 */
export function readHead(head: RequestHead, route: Route): ParsedHead {
  const { query, problems } = checkQuery(head.queryText, route.query);
  return {
    query,
    problems: [...problems, ...companyProblems(head, route), ...headerProblems(head, route)],
  };
}

function companyProblems({ header }: RequestHead, { needsCompanyId }: Route): Problem[] {
  const companyId = header('companyid');
  if (companyId === '') return [{ path: 'companyid', message: 'must not be empty' }];
  const isMissing = needsCompanyId && companyId === undefined;
  return isMissing ? [{ path: 'companyid', message: 'is required, as a header' }] : [];
}

/** Names that lists of one version or another had for their times. They are taken, and the API document has the others. */
const OLD_NAMES = { from: 'since', to: 'until' } as const;

function checkQuery(queryText: string, schema: z.ZodObject): ParsedHead {
  const members = Object.create(null) as Record<string, unknown>;
  /** The name that the client used, for its problems. */
  const writtenAs = new Map<string, string>();
  const repeated: Problem[] = [];
  for (const [given, value] of new URLSearchParams(queryText)) {
    const name = nameIn(schema, given);
    if (name in members) repeated.push({ path: given, message: 'is given more than once' });
    members[name] = value;
    writtenAs.set(name, given);
  }
  const checked = checkFields(members, schema, 'is not a query parameter of this address');
  const problems = checked.problems.map(({ path, message }) => ({
    path: writtenAs.get(path) ?? path,
    message,
  }));
  return { query: checked.value ?? {}, problems: [...repeated, ...problems] };
}

function nameIn({ shape }: z.ZodObject, given: string): string {
  if (!Object.hasOwn(OLD_NAMES, given) || Object.hasOwn(shape, given)) return given;
  const name = OLD_NAMES[given as keyof typeof OLD_NAMES];
  return Object.hasOwn(shape, name) ? name : given;
}

function headerProblems({ header }: RequestHead, { headers = [] }: Route): Problem[] {
  return headers.flatMap(({ name, schema }) => {
    const value = header(name);
    if (value === undefined) return [];
    const { error } = schema.safeParse(value);
    if (!error) return [];
    return error.issues.map(({ message }) => ({ path: name, message }));
  });
}

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\s*(;|$)/i;

/** Throws ApiError 415. A form of another site cannot send this type. */
export function assertJson({ headers }: Pick<Request, 'headers'>): void {
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) throw new ApiError('unsupported_media_type');
}

interface BodyBounds {
  maxBytes: number;
  /** From the end of the headers to the end of the body; null for the time that the server gives every request. */
  withinMs: number | null;
  /** Chunks that may be of any size; the others must have four bytes in the mean. */
  freeChunks: number;
}

export const BODY_BOUNDS: BodyBounds = {
  maxBytes: MAX_BODY_BYTES,
  withinMs: null,
  freeChunks: 1_024,
};

type Memory = Pick<RequestMemory, 'tryReserve'>;

/**
 * Returns the function that reads a body. It refuses a body that is too large, compressed, or in absurdly small chunks
 * as soon as this is known; express.raw would wait for the rest. Throws ApiError 400, 408, 413 or 415, and 503 when the
 * requests of this owner of memory already hold as much as they may.
 */
export function createReceiveBody(
  memory: Memory,
  bounds: BodyBounds = BODY_BOUNDS,
): (request: Request, response: Response) => Promise<Buffer> {
  const { maxBytes } = bounds;
  return async (request, response) => {
    if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
      throw new ApiError('unsupported_media_type', 'Send the body without compression.');
    }
    if ((lengthOf(request) ?? 0) > maxBytes) throw tooLarge(maxBytes);
    if (request.headers.expect !== undefined) response.writeContinue();
    return readAll(request, response, memory, bounds);
  };
}

function lengthOf({ headers }: Request): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}

function readAll(
  request: Request,
  response: Response,
  memory: Memory,
  { maxBytes, withinMs, freeChunks }: BodyBounds,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const expectedBytes = lengthOf(request);
    let body: ByteCollector | null = createByteCollector({ maxBytes, expectedBytes, freeChunks });
    const refuse = (error: ApiError): void => {
      body = null;
      reject(error);
    };
    request.on('data', (chunk: Buffer) => {
      if (!body) return;
      const growth = body.growthFor(chunk.length);
      if (body.receivedBytes() + chunk.length > maxBytes) refuse(tooLarge(maxBytes));
      else if (growth > 0 && !memory.tryReserve(response, growth)) refuse(overloaded());
      else if (body.isShredded()) {
        stopReading(request, response);
        refuse(new ApiError('chunks_too_small'));
      } else body.add(chunk);
    });
    request.on('end', () => {
      if (body) resolve(body.bytes());
    });
    request.on('error', () => {
      reject(new ApiError('incomplete_body'));
    });
    if (withinMs !== null) {
      endAfter(withinMs, response, () => {
        refuse(new ApiError('request_timeout'));
      });
    }
  });
}

/**
 * Reading on until the connection is closed would cost as much for each chunk as before. What is left of a read of 64 KiB,
 * up to 10,000 chunks, Node does not pass on once the request is dumped, as it does itself for a request without a reader.
 */
function stopReading(request: Request, response: Response): void {
  Object.assign(request, { _dumped: true });
  const stop = (): void => {
    if (!request.complete) request.socket.pause();
  };
  stop();
  // Node resumes it for the next request.
  response.once('finish', stop);
}

/** Calls `refuse` unless the response was sent before. */
function endAfter(withinMs: number, response: Response, refuse: () => void): void {
  const timer = setTimeout(refuse, withinMs);
  response.once('close', () => {
    clearTimeout(timer);
  });
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('body_too_large', `The body is larger than ${maxBytes} bytes.`);
}
