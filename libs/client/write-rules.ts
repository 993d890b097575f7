import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { APP_FIELDS } from '@posthorn/domain/app-fields.ts';
import { type AuthName, METHOD_RULES, SECRET_FIELDS } from '@posthorn/domain/auth-methods.ts';
import { EVENT_TYPE_FIELDS, MAX_EXAMPLE_BYTES } from '@posthorn/domain/event-type-fields.ts';
import { MAX_SCHEMA_BYTES } from '@posthorn/domain/catalogue/event-schema.ts';
import { MASK, MAX_METADATA_BYTES, REFUSED_HEADERS } from '@posthorn/domain/field-types.ts';
import { MAX_FILTER_BYTES } from '@posthorn/domain/parse-filter.ts';
import type { ObjectTable } from '@posthorn/domain/object-fields.ts';
import { PROJECT_FIELDS } from '@posthorn/domain/project-fields.ts';
import { FIELD_RULES } from '@posthorn/domain/webhook-fields.ts';
import { createDocument } from '../../services/gateway/src/openapi/document.ts';
import { type JsonSchema, resolve } from '../../services/gateway/src/openapi/json-schemas.ts';
import { FIXED_QUOTAS } from '../../services/gateway/src/projects/quotas.ts';
import { routeTable } from '../../test/support/api/route-table.ts';
import type { Bounds, FieldRule } from './src/rule-types.ts';

/*
 * Writes the rules that clients would otherwise repeat by hand: for each field of a request its type and bounds, which
 * are those of the API document, and what the tables of the domain have besides: default, owner, method.
 */
export const RULES_FILE = join(import.meta.dirname, 'src/rules.ts');

const HEADING = `// Written by \`node libs/client/write-rules.ts\` from the tables of the domain and the API document.
import type { FieldRule } from './rule-types.ts';

export type { Bounds, FieldRule } from './rule-types.ts';

/** Rules of fields by their names in requests. Those of one installation, such as its quotas, are not among them. */
type Rules = Readonly<Record<string, FieldRule>>;
`;

type Fields = Record<string, FieldRule>;
type Named = Record<string, JsonSchema>;

/** The facts that a table has about a field beside its schema. */
type Extra = Partial<FieldRule>;

/** Returns the text of src/rules.ts. */
export function rulesText(): string {
  const { components } = createDocument(routeTable()) as { components: { schemas: Named } };
  const named = components.schemas;
  const bodies = (...names: string[]): Fields =>
    Object.assign({}, ...names.map((name) => boundsOfBody(name, named))) as Fields;
  const { payload: _payload, ...message } = bodies('CreateMessage');
  const exported: [string, string, Fields][] = [
    ['PROJECT_RULES', 'a project', merge(bodies('CreateProject'), extrasOf(PROJECT_FIELDS))],
    ['APP_RULES', 'an app', merge(bodies('CreateApp'), extrasOf(APP_FIELDS))],
    [
      'EVENT_TYPE_RULES',
      'an event type',
      merge(bodies('CreateEventType'), extrasOf(EVENT_TYPE_FIELDS)),
    ],
    ['WEBHOOK_RULES', 'a webhook', merge(bodies('CreateWebhook'), webhookExtras())],
    ['MESSAGE_RULES', 'a message beside its payload', message],
    ['FILTER_RULES', 'a filter of deliveries', bodies('DeliveryFilter')],
    ['HOLD_RULES', 'a hold, and of its end', bodies('BeginHold', 'EndHold')],
    ['API_KEY_RULES', 'an API key', bodies('CreateApiKey')],
    ['PORTAL_LINK_RULES', 'a portal link', bodies('CreatePortalLink')],
  ];
  const rules = exported.map(([name, of, fields]) => {
    const lines = Object.entries(fields).map(([field, rule]) => `  ${field}: ${code(rule)},\n`);
    return `\n/** The fields of ${of}. */\nexport const ${name} = {\n${lines.join('')}} as const satisfies Rules;\n`;
  });
  return `${HEADING}${rules.join('')}\n${otherRules()}`;
}

function otherRules(): string {
  return `/** What responses have in place of a value that the caller may not see. */
export const MASK = ${code(MASK)};

/** The fields of \`hmac\` that have no meaning while Ed25519 signs (docs/contract.md C6.15). */
export const UNUSED_WITH_ED25519 = ${code(SECRET_FIELDS)} as const;

/** Names of headers that a client may not set, in lower case, and how further ones begin (docs/contract.md C6.7). */
export const REFUSED_HEADERS = ${code(REFUSED_HEADERS)} as const;
`;
}

function boundsOfBody(name: string, named: Named): Fields {
  const { properties, required = [] } = named[name] as {
    properties: Named;
    required?: string[];
  };
  const fields = Object.entries(properties).map(([field, schema]): [string, FieldRule] => [
    field,
    { ...boundsOf(schema, named), ...(required.includes(field) && { isRequired: true as const }) },
  ]);
  return Object.fromEntries(fields);
}

/** The numbers that a JSON Schema may have. */
const NUMBERS: Readonly<Record<string, keyof Bounds>> = {
  minimum: 'min',
  maximum: 'max',
  minLength: 'minChars',
  maxLength: 'maxChars',
  minItems: 'minEntries',
  maxItems: 'maxEntries',
  maxProperties: 'maxEntries',
};

/** Returns the type and the bounds that a JSON Schema states; null is always allowed where the API allows it. */
function boundsOf(given: JsonSchema, named: Named): Bounds {
  const schema = withoutNull(given, named);
  const numbers = Object.entries(NUMBERS).flatMap(([keyword, bound]) =>
    schema[keyword] === undefined ? [] : [[bound, schema[keyword]]],
  );
  const choices = schema.enum as string[] | undefined;
  const refused = (schema.not as { enum?: (number | string)[] } | undefined)?.enum;
  // The pattern of a time only repeats its format.
  const pattern = schema.format === undefined ? schema.pattern : undefined;
  return {
    type: typeOf(schema, named),
    ...(Object.fromEntries(numbers) as Partial<Bounds>),
    ...(typeof pattern === 'string' && { pattern }),
    ...(choices && { choices }),
    ...(refused && { refused }),
    ...partsOf(schema, named),
  };
}

function withoutNull(given: JsonSchema, named: Named): JsonSchema {
  const { anyOf = [] } = given as { anyOf?: JsonSchema[] };
  const [value = given] = anyOf.filter(({ type }) => type !== 'null');
  return { ...value, ...resolve(value, named).schema };
}

function partsOf({ items, ...schema }: JsonSchema, named: Named): Partial<Bounds> {
  const { propertyNames: key, additionalProperties: value } = schema as Named;
  const parts = (each: Named): Record<string, Bounds> =>
    Object.fromEntries(Object.entries(each).map(([name, part]) => [name, boundsOf(part, named)]));
  if (key && isJson(schema)) return {};
  if (key && value) return { parts: parts({ key, value }) };
  if (schema.properties) return { parts: parts(schema.properties as Named) };
  if (!items) return {};
  const entry = boundsOf(items as JsonSchema, named);
  return entry.parts ? { parts: entry.parts } : { entry };
}

/** An object whose members are no texts: its grammar is code. */
const isJson = ({ additionalProperties: value = {} }: JsonSchema): boolean =>
  Object.keys(value as JsonSchema | false).length === 0;

function typeOf({ type: given, format, items, ...schema }: JsonSchema, named: Named) {
  const type = [given].flat()[0];
  switch (type) {
    case 'boolean':
      return 'flag';
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
      return format === 'date-time' ? 'time' : 'text';
    case 'array': {
      const entry = boundsOf(items as JsonSchema, named).type;
      return entry === 'number' ? 'numbers' : entry === 'text' ? 'texts' : 'headers';
    }
    default:
      if (!schema.propertyNames) return 'object';
      return isJson(schema) ? 'json' : 'pairs';
  }
}

/** Required fields come first: a reader of an export looks for them. */
function merge(bounds: Fields, extras: Record<string, Extra>): Fields {
  const fields = Object.entries(extras).map(([name, extra]): [string, FieldRule] => {
    const bound = bounds[name];
    if (!bound) throw new Error(`no request has the field ${name}`);
    const rule = { ...bound, ...BEYOND_SCHEMAS[name], ...OWNERS[name], ...extra };
    // That of a URL depends on the settings of the installation.
    if (rule.type === 'url') delete rule.pattern;
    return [name, rule];
  });
  const missing = Object.keys(bounds).filter((name) => !(name in extras));
  if (missing.length > 0) throw new Error(`no table has ${missing.join(', ')}`);
  const isFirst = ([, { isRequired, authMethod }]: [string, FieldRule]): boolean =>
    isRequired === true && authMethod === undefined;
  return Object.fromEntries([
    ...fields.filter(isFirst),
    ...fields.filter((each) => !isFirst(each)),
  ]);
}

/** Bounds that JSON Schema has no keyword for. */
const BEYOND_SCHEMAS: Readonly<Record<string, Extra>> = {
  metadata: { maxBytes: MAX_METADATA_BYTES },
  filter: { maxBytes: MAX_FILTER_BYTES },
  schema: { maxBytes: MAX_SCHEMA_BYTES },
  example: { maxBytes: MAX_EXAMPLE_BYTES },
  customHeaders: { maxBytes: FIXED_QUOTAS.headerBytes },
};

const OWNERS: Readonly<Record<string, Extra>> = {
  projectId: { owner: 'Project' },
  appId: { owner: 'App' },
};

function extrasOf(table: ObjectTable): Record<string, Extra> {
  const extras = Object.entries(table).map(([name, rule]): [string, Extra] => {
    const { given, isRequired, without, whenAbsent, show } = rule;
    const shown = show ? show(without as never) : without;
    return [
      name,
      {
        ...(given === 'at creation' && { isFixed: true }),
        ...(isRequired ? {} : { default: shown ?? whenAbsent ?? null }),
      },
    ];
  });
  return Object.fromEntries(extras);
}

const isOneValue = (values: readonly unknown[]): boolean =>
  values.every((each) => JSON.stringify(each) === JSON.stringify(values[0]));

function webhookExtras(): Record<string, Extra> {
  const extras = FIELD_RULES.flatMap(([name, rule]): [string, Extra][] => {
    if (name === 'authMethod') return authExtras();
    const { given, isRequired, isKept, initially, show, sealed, audit } = rule;
    if (given === 'never') return [];
    const initial = ['one', 'other'].map((host) => initially?.({ url: `https://${host}.example` }));
    const [value = null] = initial.map((each) => (show ? show(each as never) : each));
    // Otherwise it follows from the URL, or is generated.
    const hasDefault = !isRequired && initially !== undefined && isOneValue(initial);
    return [
      [
        name,
        {
          ...(sealed === 'as text' && { type: 'secret' }),
          ...(audit === 'url' && { type: 'url' }),
          ...(given === 'at creation' && { isFixed: true }),
          ...(isKept && { isKept }),
          ...(hasDefault && { default: value }),
        },
      ],
    ];
  });
  return Object.fromEntries(extras);
}

/** The method and its fields, in the place of the field of the table that has all of them. */
function authExtras(): [string, Extra][] {
  const methods = Object.entries(METHOD_RULES);
  const fields = methods.flatMap(([authMethod, { fields }]) =>
    Object.entries(fields).map(([name, rule]): [string, Extra] => {
      const { as, isRequired, initially, secret, audit } = rule;
      const initial = ['one', 'other'].map((own) => initially?.(own));
      const hasDefault = initially !== undefined && isOneValue(initial);
      return [
        name,
        {
          ...(secret && { type: 'secret' }),
          ...(audit === 'url' && { type: 'url' }),
          ...(isRequired && { isRequired }),
          ...(hasDefault && { default: initial[0] }),
          authMethod: authMethod as AuthName,
          shownAs: as,
        },
      ];
    }),
  );
  return [['authMethod', { default: methods[0]?.[0] }], ...fields];
}

/** Returns a value as a TypeScript literal on one line. */
function code(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(code).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${name}: ${code(member)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

function quoted(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return `'${inside.replaceAll("'", String.raw`\'`)}'`;
}

if (import.meta.main) writeFileSync(RULES_FILE, rulesText());
