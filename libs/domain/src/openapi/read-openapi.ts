import { z } from 'zod';
import { EVENT_TYPE_FIELDS } from '../event-type-fields.ts';
import { isList, isObject, type Json, type JsonObject } from '../filter.ts';
import { createShape, newFields, type StoredFields } from '../object-fields.ts';
import { type ImportProblem, type Part, partOf, type Report, resolved } from './parts.ts';
import { createSchemaReader } from './read-schema.ts';

/*
 * Event types from an OpenAPI document: 3.1 with `webhooks`, or 3.0 with `x-webhooks` (docs/event-types.md).
 */

export const MAX_EVENT_TYPES = 2_000;

/** An event type as the store has it. */
export type ImportedEventType = StoredFields<typeof EVENT_TYPE_FIELDS>;

/** Where the document has what is checked last. */
export type Places = Readonly<Record<'schema' | 'example', readonly string[]>>;

interface ReadEventType {
  /** Null when there are problems. */
  eventType: ImportedEventType | null;
  places: Places;
  problems: readonly ImportProblem[];
}

/**
 * Returns the event types, one for each webhook, or what is wrong with the document itself. A step of the iteration
 * reads one webhook, at most 32 KiB of schemas and its example.
 */
export function readOpenApi(
  document: JsonObject,
): { eventTypes: Iterable<ReadEventType> } | { problem: ImportProblem } {
  const { openapi } = document;
  if (typeof openapi !== 'string' || !/^3\.[01]\.\d/.test(openapi)) {
    return { problem: { path: ['openapi'], message: 'must be 3.1 or 3.0, such as 3.1.0' } };
  }
  const key = 'webhooks' in document ? 'webhooks' : 'x-webhooks';
  const { [key]: webhooks } = document;
  if (!isObject(webhooks)) {
    const message = 'must be an object (x-webhooks in a document of version 3.0)';
    return { problem: { path: ['webhooks'], message } };
  }
  if (Object.keys(webhooks).length > MAX_EVENT_TYPES) {
    const message = `must have at most ${MAX_EVENT_TYPES} entries`;
    return { problem: { path: [key], message } };
  }
  return { eventTypes: readWebhooks(document, { value: webhooks, path: [key] }) };
}

function* readWebhooks(document: JsonObject, webhooks: Part): Generator<ReadEventType> {
  const root: Part = { value: document, path: [] };
  const schemas = createSchemaReader(root);
  for (const name of Object.keys(webhooks.value as JsonObject)) {
    const problems: ImportProblem[] = [];
    const report: Report = (path, message) => void problems.push({ path, message });
    const resolve = (part: Part): Part => resolved(part, root, report);
    const parts = readWebhook(partOf(webhooks, name), resolve, report);
    const schema = { ...parts.schema, value: schemas.read(parts.schema, report) };
    const eventType = checked(name, { ...parts, schema }, report);
    const places = { schema: parts.schema.path, example: parts.example.path };
    yield { eventType: problems.length === 0 ? eventType : null, places, problems };
  }
}

type Parts = Record<
  'name' | 'description' | 'group' | 'schema' | 'example' | 'deprecated' | 'archived',
  Part
>;

const created = z.object(createShape(EVENT_TYPE_FIELDS));

/** Checks the parts by the rules of the fields, and reports their problems where the document has them. */
function checked(name: string, parts: Parts, report: Report): ImportedEventType | null {
  const values = Object.entries(parts).map(([field, { value }]) => [field, value ?? null]);
  const { data, error } = created.safeParse({ ...Object.fromEntries(values), name });
  for (const { path, message } of error?.issues ?? []) {
    const [field, ...inner] = path.map(String);
    report([...parts[field as keyof Parts].path, ...inner], message);
  }
  return data ? newFields(EVENT_TYPE_FIELDS, data) : null;
}

function readWebhook(item: Part, resolve: (part: Part) => Part, report: Report): Parts {
  const operation = operationOf(resolve(item), report);
  const description = partOf(operation, 'description');
  const tags = partOf(operation, 'tags');
  const body = resolve(partOf(operation, 'requestBody'));
  const media = mediaOf(partOf(body, 'content'));
  return {
    name: item,
    description: description.value === undefined ? partOf(operation, 'summary') : description,
    group: isList(tags.value ?? null) ? firstOf(tags) : tags,
    schema: partOf(media, 'schema'),
    example: exampleOf(media, resolve),
    deprecated: partOf(operation, 'deprecated'),
    archived: partOf(operation, 'x-archived'),
  };
}

const firstOf = ({ value, path }: Part): Part => ({
  value: (value as readonly Json[])[0],
  path: [...path, '0'],
});

const METHODS = ['post', 'get', 'put', 'delete', 'options', 'head', 'patch', 'trace'];

/** `post`, or the only operation. */
function operationOf(item: Part, report: Report): Part {
  const methods = METHODS.filter((method) => partOf(item, method).value !== undefined);
  const [method = 'post', ...others] = methods;
  const operation = partOf(item, method);
  if (method !== 'post' && others.length > 0) {
    report(item.path, 'must have post, or one operation only');
  } else if (!isObject(operation.value ?? null)) {
    report(item.path, 'must have an operation, such as post');
  }
  return operation;
}

const JSON_CONTENT = /^(?:application\/(?:[\w.+-]+\+)?json(?:$|[\s;])|\*\/\*$)/i;

/** The content in JSON. */
function mediaOf(content: Part): Part {
  const types = isObject(content.value) ? Object.keys(content.value) : [];
  const others = types.filter((type) => JSON_CONTENT.test(type));
  const [type = 'application/json'] = types.includes('application/json') ? [] : others;
  return partOf(content, type);
}

/** `example`, or the first of `examples`. */
function exampleOf(media: Part, resolve: (part: Part) => Part): Part {
  const example = partOf(media, 'example');
  const examples = partOf(media, 'examples');
  const [first] = isObject(examples.value) ? Object.keys(examples.value) : [];
  if (example.value !== undefined || first === undefined) return example;
  return partOf(resolve(partOf(examples, first)), 'value');
}
