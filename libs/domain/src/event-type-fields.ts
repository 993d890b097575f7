import { z } from 'zod';
import {
  MAX_SCHEMA_BYTES,
  problemOfJson,
  problemsOfSchema,
  type SchemaProblem,
} from './catalogue/event-schema.ts';
import { eventType, text } from './field-types.ts';
import type { Json } from './filter.ts';
import type { ObjectTable } from './object-fields.ts';

/** An example has as many bytes as JSON as a schema, and as many levels as a payload. */
export const MAX_EXAMPLE_BYTES = 32_768;
const MAX_EXAMPLE_LEVELS = 64;

/** How many schemas of an event type stay readable, the newest of them included. */
export const SCHEMA_VERSIONS_KEPT = 20;

/** The whole of a path segment that clients resolve before they send it, so that no address has it. */
const WITHOUT_ADDRESS = ['.', '..'];

export const eventTypeName = eventType
  .refine((name) => !WITHOUT_ADDRESS.includes(name), 'must be more than a dot or two')
  .meta({ not: { enum: WITHOUT_ADDRESS } });

const group = text(1, 100).meta({
  description:
    'Event types of a group are listed together; by default those with the same first part',
  example: 'Orders',
});

const flag = z.boolean('must be true or false');

/** An object of JSON, stored as its text. Numbers are doubles, as JSON.parse reads them. */
function jsonText(problemsOf: (given: Json) => SchemaProblem[]) {
  return z
    .preprocess(
      (given, context) => {
        const problems = problemsOf(given as Json);
        for (const problem of problems) context.addIssue({ code: 'custom', ...problem });
        return given;
      },
      z.record(z.string(), z.unknown(), 'must be an object'),
    )
    .transform((value) => JSON.stringify(value));
}

function problemsOfExample(given: Json): SchemaProblem[] {
  const problem = problemOfJson(given, { maxLevels: MAX_EXAMPLE_LEVELS });
  if (problem) return [problem];
  const whole = (message: string): SchemaProblem[] => [{ path: [], message }];
  // zod leaves this key out, and JSON has it.
  const isLost = typeof given === 'object' && given !== null && Object.hasOwn(given, '__proto__');
  if (isLost) return whole('must not have the key __proto__ at its top');
  // Undefined for no JSON at all, which is no object either.
  const json = JSON.stringify(given) as string | undefined;
  const bytes = Buffer.byteLength(json ?? '');
  return bytes > MAX_EXAMPLE_BYTES
    ? whole(`must have at most ${MAX_EXAMPLE_BYTES} bytes as JSON`)
    : [];
}

const shownJson = (stored: string | null): unknown =>
  stored === null ? null : (JSON.parse(stored) as unknown);

const jsonField = z.record(z.string(), z.unknown()).nullable();

/** The fields that a client gives to an event type (docs/contract.md C28.2). Its schema has a version beside them. */
export const EVENT_TYPE_FIELDS = {
  name: {
    contract: 'C28.2',
    request: eventTypeName,
    given: 'at creation',
    isRequired: true,
    response: z.string(),
    audit: 'shown',
  },
  description: {
    contract: 'C28.2',
    request: text(0, 4_096).meta({ description: 'For people, as plain text with its line breaks' }),
    given: 'always',
    without: '',
    response: z.string().meta({ description: 'Empty when none was given' }),
    audit: 'shown',
  },
  group: {
    contract: 'C28.2',
    request: group,
    given: 'always',
    without: null,
    response: z.string().nullable(),
    audit: 'shown',
  },
  schema: {
    contract: 'C28.4',
    request: jsonText(problemsOfSchema).meta({
      description: `JSON Schema 2020-12 of the payload, with the keywords of docs/event-types.md. At most ${MAX_SCHEMA_BYTES} bytes, 32 levels and 2,000 objects`,
      example: { type: 'object', required: ['amount'], properties: { amount: { type: 'number' } } },
    }),
    given: 'always',
    without: null,
    response: jsonField,
    show: shownJson,
    audit: 'hidden',
  },
  example: {
    contract: 'C28.2',
    request: jsonText(problemsOfExample).meta({
      description: `A payload, which meets \`schema\`. At most ${MAX_EXAMPLE_BYTES} bytes`,
      example: { amount: 12.5 },
    }),
    given: 'always',
    without: null,
    response: jsonField,
    show: shownJson,
    audit: 'hidden',
  },
  deprecated: {
    contract: 'C28.2',
    request: flag.meta({ description: 'It works, and is marked wherever people choose' }),
    given: 'always',
    without: false,
    response: z.boolean(),
    audit: 'shown',
  },
  archived: {
    contract: 'C28.2',
    request: flag.meta({
      description: 'It is shown to nobody who chooses, and `eventTypePolicy` refuses its messages',
    }),
    given: 'always',
    without: false,
    response: z.boolean(),
    audit: 'shown',
  },
} as const satisfies ObjectTable;

/** Returns the id of an event type: its project and its name, which has no other character that ends a project's id. */
export const eventTypeIdOf = (projectId: string, name: string): string => `${projectId}/${name}`;
