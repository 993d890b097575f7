import type { CompileSchema, JsonSchema } from '../api/api-document.ts';

/** One combination of the fields that the rules of a schema name, and the values that the rules test. */
export interface Shape {
  fields: string[];
  fixed: Record<string, unknown>;
}

export interface Shapes {
  /** The fields that the rules of the schema name. */
  ruled: string[];
  shapes: Shape[];
  /** Combinations that the rules forbid. */
  forbidden: Shape[];
}

interface ShapeDeps {
  compile: CompileSchema;
  /** Returns one valid value. */
  example: (schema: JsonSchema) => unknown;
}

const RULES = ['oneOf', 'allOf', 'anyOf', 'not', 'if', 'then', 'else', 'dependentSchemas'];

/** All combinations of 16 fields would be 700,000. The largest that a webhook needs has six: global, with OAuth 2.0. */
const MAX_FIELDS = 6;

/**
 * Tries every combination of at most six of the fields that rules such as `oneOf` or `if` name. Random values would
 * be an allowed combination once in a hundred times.
 */
export function createShapes({ compile, example }: ShapeDeps): (schema: JsonSchema) => Shapes {
  return (schema) => {
    const properties = schema.properties as Record<string, JsonSchema>;
    const required = (schema.required ?? []) as string[];
    // Rules about lists look into their values; the combinations of fields do not depend on them.
    const ruled = [...namesIn(schema)].filter((name) => properties[name]?.type !== 'array');
    const rest = required.filter((field) => !ruled.includes(field));
    const valueOf = (field: string): unknown => example(properties[field] ?? {});
    const values = Object.fromEntries([...ruled, ...rest].map((field) => [field, valueOf(field)]));
    const check = compile(schema);
    const isAllowed = ({ fields, fixed }: Shape): boolean => {
      const given = [...fields, ...rest].map((field) => [field, values[field]]);
      return check({ ...Object.fromEntries(given), ...fixed });
    };
    const all = combinations(ruled, properties);
    return {
      ruled,
      shapes: all.filter(isAllowed),
      forbidden: all.filter((shape) => !isAllowed(shape)),
    };
  };
}

/** Returns all combinations up to MAX_FIELDS: each field is present or not, one with an enum with each of its values. */
function combinations(ruled: readonly string[], properties: Record<string, JsonSchema>): Shape[] {
  return ruled.reduce<Shape[]>(
    (shapes, field) => {
      const values = properties[field]?.enum as unknown[] | undefined;
      return shapes.flatMap((shape) =>
        sizeOf(shape) === MAX_FIELDS ? [shape] : [shape, ...withField(shape, field, values)],
      );
    },
    [{ fields: [], fixed: {} }],
  );
}

const sizeOf = ({ fields, fixed }: Shape): number => fields.length + Object.keys(fixed).length;

function withField({ fields, fixed }: Shape, field: string, values?: unknown[]): Shape[] {
  if (!values) return [{ fields: [...fields, field], fixed }];
  return values.map((value) => ({ fields, fixed: { ...fixed, [field]: value } }));
}

function namesIn(schema: JsonSchema): Set<string> {
  const rules = RULES.flatMap((rule) => (rule in schema ? [schema[rule]] : []));
  const properties = Object.keys(schema.properties as object);
  const words = new Set(rules.flatMap((rule) => wordsIn(rule)));
  return new Set(properties.filter((name) => words.has(name)));
}

/** Returns every key and every text of a rule; those that are names of fields are the fields it names. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, member]) => [key, ...wordsIn(member)]);
}
