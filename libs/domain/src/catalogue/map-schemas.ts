import { isList, isObject, type Json, type JsonObject } from '../filter.ts';

/** The keywords of JSON Schema 2020-12 whose values are schemas: one, a list of them, or an object of them by name. */
const OF_ONE = new Set([
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
]);
const OF_A_LIST = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const BY_NAME = new Set([
  '$defs',
  'definitions',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);

type Convert = (schema: JsonObject, path: readonly string[]) => JsonObject;

/**
 * Returns the schema with each object of it converted, inner ones first. Values that are no schemas stay as they are: a
 * property may have the name `$ref`, and an example any content.
 */
export function mapSchemas(schema: Json, convert: Convert, path: readonly string[] = []): Json {
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]): [string, Json] => [
    key,
    mapKeyword(key, value, convert, [...path, key]),
  ]);
  return convert(Object.fromEntries(entries), path);
}

function mapKeyword(key: string, value: Json, convert: Convert, path: readonly string[]): Json {
  if (OF_ONE.has(key)) return mapSchemas(value, convert, path);
  if (OF_A_LIST.has(key) && isList(value)) {
    return value.map((each, index) => mapSchemas(each, convert, [...path, String(index)]));
  }
  if (!BY_NAME.has(key) || !isObject(value)) return value;
  const entries = Object.entries(value).map(([name, each]): [string, Json] => [
    name,
    mapSchemas(each, convert, [...path, name]),
  ]);
  return Object.fromEntries(entries);
}
