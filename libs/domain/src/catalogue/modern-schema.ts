import { isList, type Json, type JsonObject } from '../filter.ts';
import { FORMATS } from './event-schema.ts';

/**
 * Returns one object of a schema of OpenAPI as JSON Schema 2020-12 has it; the schemas in it stay as they are. A format
 * that is not checked, such as `int64`, becomes the note `x-format`. `isOld` is for 3.0, which has `nullable` and flags
 * beside `minimum` and `maximum`.
 */
export function modernSchema(given: JsonObject, isOld: boolean): JsonObject {
  const schema = withFormat(given);
  return isOld ? withNull(withBounds(schema)) : schema;
}

function withFormat(schema: JsonObject): JsonObject {
  const { format } = schema;
  if (typeof format !== 'string' || FORMATS.has(format)) return schema;
  const entries = Object.entries(schema).map(([key, value]): [string, Json] => [
    key === 'format' ? 'x-format' : key,
    value,
  ]);
  return Object.fromEntries(entries);
}

const BOUNDS = { exclusiveMinimum: 'minimum', exclusiveMaximum: 'maximum' } as const;

/** `minimum: 0` with `exclusiveMinimum: true` is `exclusiveMinimum: 0`. */
function withBounds(schema: JsonObject): JsonObject {
  let bounded = schema;
  for (const [flag, bound] of Object.entries(BOUNDS)) {
    const { [flag]: isExclusive, [bound]: limit, ...others } = bounded;
    if (typeof isExclusive !== 'boolean') continue;
    if (limit === undefined) bounded = others;
    else bounded = { ...others, [isExclusive ? flag : bound]: limit };
  }
  return bounded;
}

/** `nullable` beside a type adds null to it; beside others, such as a reference, null is one more choice. */
function withNull({ nullable, ...schema }: JsonObject): JsonObject {
  if (nullable !== true) return schema;
  const { type, enum: values } = schema;
  const choices = isList(values) && { enum: values.includes(null) ? values : [...values, null] };
  if (type !== undefined) {
    const types = isList(type) ? type : [type];
    return { ...schema, type: [...types.filter((each) => each !== 'null'), 'null'], ...choices };
  }
  const isNarrow = ['$ref', 'allOf', 'anyOf', 'oneOf', 'not'].some((key) => key in schema);
  return isNarrow ? { anyOf: [schema, { type: 'null' }] } : { ...schema, ...choices };
}
