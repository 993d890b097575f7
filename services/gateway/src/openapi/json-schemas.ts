import { z } from 'zod';

/** A JSON Schema of draft 2020-12, the dialect of OpenAPI 3.1. */
export type JsonSchema = Record<string, unknown>;

/** Converts zod schemas to JSON Schemas, and collects those that have a name (`.meta({ id })`). */
export interface SchemaRegistry {
  /** The schema of a request, before conversion. It has no other fields. */
  ofInput: (schema: z.ZodType) => JsonSchema;
  /**
   * The schema after conversion: for responses, whose objects may get more fields, and for query parameters, which are
   * sent as text.
   */
  ofOutput: (schema: z.ZodType) => JsonSchema;
  /** Gives a schema a name, and returns the reference to it. Throws if a different schema has the name. */
  name: (name: string, schema: JsonSchema) => JsonSchema;
  /** For `components.schemas`, by name. */
  named: Record<string, JsonSchema>;
}

type Side = 'input' | 'output';

const NAMED_AT = '#/components/schemas/';

export function createSchemaRegistry(): SchemaRegistry {
  const named: Record<string, JsonSchema> = {};

  function convert(schema: z.ZodType, side: Side): JsonSchema {
    const converted = z.toJSONSchema(schema, {
      io: side,
      override: ({ zodSchema, jsonSchema }) => {
        if (zodSchema instanceof z.ZodObject) closeOrOpen(jsonSchema, side);
        refine(jsonSchema);
      },
    });
    const { $defs = {}, ...root } = withRefs(converted) as JsonSchema;
    delete root.$schema;
    for (const [name, found] of Object.entries($defs as Record<string, JsonSchema>)) {
      addOnce(named, name, found);
    }
    return root;
  }

  return {
    named,
    name(name, schema) {
      addOnce(named, name, schema);
      return { $ref: NAMED_AT + name };
    },
    ofInput: (schema) => convert(schema, 'input'),
    ofOutput: (schema) => convert(schema, 'output'),
  };
}

/** Unknown fields of a request are refused. A response may get fields, which a strict client would refuse. */
function closeOrOpen(schema: JsonSchema, side: Side): void {
  if (side === 'input') schema.additionalProperties = false;
  else if (schema.additionalProperties === false) delete schema.additionalProperties;
}

function refine(schema: JsonSchema): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if ('example' in schema) {
    // OpenAPI 3.1 deprecates `example` in favor of the JSON Schema keyword.
    schema.examples = [schema.example];
    delete schema.example;
  }
}

function withRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withRefs);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string'
        ? [key, member.replace('#/$defs/', NAMED_AT)]
        : [key, withRefs(member)],
    ),
  );
}

/** Throws if two different schemas have the same name. */
function addOnce(named: Record<string, JsonSchema>, name: string, schema: JsonSchema): void {
  const before = named[name];
  if (before && JSON.stringify(before) !== JSON.stringify(schema)) {
    throw new Error(`two different schemas have the id ${name}`);
  }
  named[name] = schema;
}

interface Resolved {
  schema: JsonSchema;
  /** Null for a schema without a name. */
  name: string | null;
}

/** Follows a `$ref` to a named schema. */
export function resolve(schema: JsonSchema, named: Record<string, JsonSchema>): Resolved {
  if (typeof schema.$ref !== 'string') return { schema, name: null };
  const name = schema.$ref.slice(NAMED_AT.length);
  const target = named[name];
  if (!target) throw new Error(`no schema has the id ${name}`);
  return { schema: target, name };
}
