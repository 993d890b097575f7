import { z } from 'zod';
import {
  metadataField,
  metadataOf,
  metadataText,
  optionalFields,
  removableFields,
  text,
  uid,
} from './field-types.ts';

/*
 * The fields that a client gives to its projects and apps, each once: see project-fields.ts and app-fields.ts. From a
 * table follow the schemas of requests and responses, what is stored, and what the audit log shows. Webhooks have a
 * table of their own (webhook-fields.ts), for their secrets.
 */
interface ObjectField {
  /** The rules in docs/contract.md. */
  contract: string;
  request: z.ZodType;
  /** The same where an object is created, when its documentation differs. */
  create?: z.ZodType;
  given: 'at creation' | 'always';
  isRequired?: true;
  /** The stored value of an object that was made without the field, or that lost it. */
  without?: unknown;
  /** The behaviour of an object without a value, where its responses leave the field out. */
  whenAbsent?: unknown;
  /** Absent for a field that responses do not have. */
  response?: z.ZodType;
  /** The value in a response; undefined leaves the field out. The stored value by default. */
  show?: (stored: never) => unknown;
  /** Whether the audit log has the values of a change, or only that the field changed. */
  audit: 'shown' | 'hidden';
}

export type ObjectTable = Readonly<Record<string, ObjectField>>;

export const name = text(1, 100).meta({ example: 'Orders' });
export const description = text(0, 1_000);
export const ENVIRONMENTS = ['development', 'production'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];
export const environment = z.enum(ENVIRONMENTS, 'must be development or production');

/** The fields that projects and apps have alike. */
export const SHARED_FIELDS = {
  name: {
    contract: 'C5.2',
    request: name,
    given: 'always',
    isRequired: true,
    response: z.string(),
    audit: 'shown',
  },
  uid: {
    contract: 'C5.12',
    request: uid,
    given: 'always',
    without: undefined,
    response: uid.nullable(),
    show: (stored?: string) => stored ?? null,
    audit: 'shown',
  },
  environment: {
    contract: 'C5.3',
    request: environment.meta({ default: 'development' }),
    given: 'at creation',
    without: 'development',
    response: z.enum(ENVIRONMENTS),
    audit: 'shown',
  },
  /** Stored as JSON. */
  metadata: {
    contract: 'C5.14',
    request: metadataText,
    given: 'always',
    without: undefined,
    response: metadataField,
    show: metadataOf,
    audit: 'hidden',
  },
} as const satisfies ObjectTable;

type NamesWith<Table extends ObjectTable, Part> = {
  [Name in keyof Table]: Table[Name] extends Part ? Name : never;
}[keyof Table];
type RequestOf<Table extends ObjectTable, Name extends keyof Table> = Table[Name]['request'];

interface Required {
  isRequired: true;
}
type Optional<Table extends ObjectTable> = Exclude<keyof Table, NamesWith<Table, Required>>;

type CreateShape<Table extends ObjectTable> = {
  [Name in NamesWith<Table, Required>]: RequestOf<Table, Name>;
} & { [Name in Optional<Table>]: z.ZodOptional<RequestOf<Table, Name>> };

type UpdateShape<Table extends ObjectTable> = {
  [Name in NamesWith<Table, Required & { given: 'always' }>]: z.ZodExactOptional<
    RequestOf<Table, Name>
  >;
} & {
  [Name in Extract<Optional<Table>, NamesWith<Table, { given: 'always' }>>]: z.ZodExactOptional<
    z.ZodNullable<RequestOf<Table, Name>>
  >;
};

type ResponseName<Table extends ObjectTable> = NamesWith<Table, { response: z.ZodType }>;
type ResponseShape<Table extends ObjectTable> = {
  [Name in ResponseName<Table>]: Table[Name] extends { response: infer Schema extends z.ZodType }
    ? Schema
    : never;
};

type Stored<Field extends ObjectField> =
  Exclude<z.output<Field['request']>, null> | (Field extends Required ? never : Field['without']);
type StoredOptional<Table extends ObjectTable> = {
  [Name in keyof Table]: undefined extends Stored<Table[Name]> ? Name : never;
}[keyof Table];

/** The fields as a document has them. One without a value may be absent. */
export type StoredFields<Table extends ObjectTable> = {
  [Name in Exclude<keyof Table, StoredOptional<Table>>]: Stored<Table[Name]>;
} & { [Name in StoredOptional<Table>]?: Stored<Table[Name]> };

/** The fields of a checked request that creates an object. */
export type NewFields<Table extends ObjectTable> = z.output<z.ZodObject<CreateShape<Table>>>;
/** The fields of a checked request that changes one: null takes a field away. */
export type FieldChanges<Table extends ObjectTable> = z.output<z.ZodObject<UpdateShape<Table>>>;

const rulesOf = (table: ObjectTable): [string, ObjectField][] => Object.entries(table);

function requestsOf(rules: readonly [string, ObjectField][]): Record<string, z.ZodType> {
  return Object.fromEntries(rules.map(([field, { request }]) => [field, request]));
}

export function createShape<Table extends ObjectTable>(table: Table): CreateShape<Table> {
  const rules = rulesOf(table).map(([field, { create, ...rule }]): [string, ObjectField] => [
    field,
    { ...rule, request: create ?? rule.request },
  ]);
  return {
    ...requestsOf(rules.filter(([, { isRequired }]) => isRequired)),
    ...optionalFields(requestsOf(rules.filter(([, { isRequired }]) => !isRequired))),
  } as CreateShape<Table>;
}

export function updateShape<Table extends ObjectTable>(table: Table): UpdateShape<Table> {
  const rules = rulesOf(table).filter(([, { given }]) => given === 'always');
  const kept = Object.entries(requestsOf(rules.filter(([, { isRequired }]) => isRequired)));
  return {
    ...Object.fromEntries(kept.map(([field, schema]) => [field, schema.exactOptional()])),
    ...removableFields(requestsOf(rules.filter(([, { isRequired }]) => !isRequired))),
  } as UpdateShape<Table>;
}

export function responseShape<Table extends ObjectTable>(table: Table): ResponseShape<Table> {
  return Object.fromEntries(
    rulesOf(table).flatMap(([field, { response }]) => (response ? [[field, response]] : [])),
  ) as ResponseShape<Table>;
}

/** Returns the fields as responses have them. */
export function responseFields<Table extends ObjectTable>(
  table: Table,
  stored: StoredFields<Table>,
): z.output<z.ZodObject<ResponseShape<Table>>> {
  const values: Readonly<Record<string, unknown>> = stored;
  const shown = rulesOf(table).flatMap(([field, { response, show }]) => {
    const value = show ? show(values[field] as never) : values[field];
    return response && value !== undefined ? [[field, value]] : [];
  });
  return Object.fromEntries(shown) as ReturnType<typeof responseFields<Table>>;
}

/** Returns the fields of a new object as they are stored. */
export function newFields<Table extends ObjectTable>(
  table: Table,
  given: NewFields<Table>,
): StoredFields<Table> {
  const values: Readonly<Record<string, unknown>> = given;
  return Object.fromEntries(
    rulesOf(table).map(([field, { without }]) => [field, values[field] ?? without]),
  ) as StoredFields<Table>;
}

/** Returns the fields that an update sets, as they are stored. */
export function changedFields<Table extends ObjectTable>(
  table: Table,
  changes: FieldChanges<Table>,
): Partial<StoredFields<Table>> {
  const values: Readonly<Record<string, unknown>> = changes;
  return Object.fromEntries(
    rulesOf(table).flatMap(([field, { without }]) =>
      values[field] === undefined ? [] : [[field, values[field] ?? without]],
    ),
  ) as Partial<StoredFields<Table>>;
}

/** Returns the fields for the audit log (see `changesBetween`). */
export function auditedObject(table: ObjectTable, stored: object): Record<string, unknown> {
  const values = stored as Readonly<Record<string, unknown>>;
  return Object.fromEntries(rulesOf(table).map(([field]) => [field, values[field]]));
}

/** The names of the fields whose values the audit log may have. */
export function objectFieldsShown(table: ObjectTable): string[] {
  return rulesOf(table).flatMap(([field, { audit }]) => (audit === 'shown' ? [field] : []));
}
