import { isObject, type Json, type JsonObject } from '../filter.ts';
import { MAX_SCHEMA_BYTES } from './event-schema.ts';
import { mapSchemas } from './map-schemas.ts';
import { modernSchema } from './modern-schema.ts';
import { type Part, partOf, type Report, stepsOf } from './parts.ts';

/*
 * A schema of an OpenAPI document as one that stands alone: in JSON Schema 2020-12, and with what it refers to in
 * `#/components/schemas` as its `$defs`.
 */

const TOO_LARGE = `has more than ${MAX_SCHEMA_BYTES} bytes with the components that it refers to`;

interface Converted {
  schema: Json;
  bytes: number;
  /** Names in `#/components/schemas`. */
  components: readonly string[];
}

interface SchemaReader {
  /** Returns the schema, which may share objects with others; undefined when the document has none or it is reported. */
  read: (part: Part, report: Report) => Json | undefined;
}

/** Converts each component once, however many webhooks refer to it. */
export function createSchemaReader(root: Part): SchemaReader {
  const { openapi } = root.value as JsonObject;
  const isOld = String(openapi).startsWith('3.0');
  const all = partOf(partOf(root, 'components'), 'schemas');
  const known = new Map<string, Converted>();

  function componentOf(name: string, report: Report): Converted | null {
    const converted = known.get(name) ?? convert(partOf(all, name), isOld, report);
    if (converted) known.set(name, converted);
    return converted;
  }

  return {
    read(part, report) {
      if (part.value === undefined) return undefined;
      const root = convert(part, isOld, report);
      if (!root) return undefined;
      const names = new Set(root.components);
      const found = new Map<string, Json>();
      let { bytes } = root;
      // The set grows by what each component refers to.
      for (const name of names) {
        const component = componentOf(name, report);
        if (!component) return undefined;
        bytes += component.bytes;
        if (bytes > MAX_SCHEMA_BYTES) {
          report(part.path, TOO_LARGE);
          return undefined;
        }
        found.set(name, component.schema);
        for (const each of component.components) names.add(each);
      }
      return found.size === 0 ? root.schema : withComponents(root.schema, found, part, report);
    },
  };
}

function withComponents(
  schema: Json,
  components: ReadonlyMap<string, Json>,
  { path }: Part,
  report: Report,
): Json {
  // Without an object there would be no reference.
  const { $defs, ...others } = schema as JsonObject;
  const own = isObject($defs) ? $defs : {};
  const twice = Object.keys(own).find((name) => components.has(name));
  if (twice !== undefined) {
    report([...path, '$defs', twice], 'has the name of a component that the schema refers to');
  }
  return { ...others, $defs: { ...own, ...Object.fromEntries(components) } };
}

/** Null when it is reported. */
function convert({ value, path }: Part, isOld: boolean, report: Report): Converted | null {
  const size = value === undefined ? 0 : JSON.stringify(value).length;
  if (size === 0 || size > MAX_SCHEMA_BYTES) {
    report(path, size === 0 ? 'is missing, and a schema refers to it' : TOO_LARGE);
    return null;
  }
  const components = new Set<string>();
  let isWhole = true;
  const schema = mapSchemas(value as Json, (given, inner) => {
    const each = modernSchema(given, isOld);
    if (typeof each.$ref !== 'string') return each;
    const target = targetOf(each.$ref, path);
    if (target?.component !== undefined) components.add(target.component);
    if (target) return { ...each, $ref: target.pointer };
    isWhole = false;
    report([...path, ...inner, '$ref'], 'must lead into this schema or to #/components/schemas');
    return each;
  });
  if (!isWhole) return null;
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  return { schema, bytes, components: [...components] };
}

/** Returns where a reference leads in a schema that stands alone; null for one that leads elsewhere. */
function targetOf(
  reference: string,
  place: readonly string[],
): { pointer: string; component?: string } | null {
  const steps = stepsOf(reference);
  if (!steps) return null;
  const from = (index: number): string =>
    reference
      .slice('#/'.length)
      .split('/')
      .slice(index)
      .map((step) => `/${step}`)
      .join('');
  const [first, second, component] = steps;
  if (first === 'components' && second === 'schemas' && component !== undefined) {
    return { pointer: `#/$defs${from(2)}`, component };
  }
  const isOwn = place.every((step, index) => step === steps[index]);
  return isOwn ? { pointer: `#${from(place.length)}` } : null;
}
