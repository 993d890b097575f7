import { z } from 'zod';
import {
  externalId,
  isoTime,
  messageTags,
  orderingKey,
  retentionDays,
  timeField,
  timeText,
} from './field-types.ts';
import { DAY_MS } from './ids.ts';

/**
 * The fields that a client may give with a message beside its address, its event type and its payload, each once. From this
 * table follow the schemas of requests and responses, the headers of ingested records, and what a message keeps.
 */
interface FieldRule {
  /** The rules in docs/contract.md. */
  contract: string;
  /** The value in a request. */
  request: z.ZodType;
  /** The header of an ingested record (docs/ingest.md). */
  header: `posthorn-${string}`;
  /** Returns the value of the header as a request would have it, for the schema to check. The text itself by default. */
  fromHeader?: (text: string) => unknown;
  /**
   * Where the message has another form: its name there, and what returns it from the checked value of a request. Undefined
   * for a value that is the same as none.
   */
  given?: { name: string; value: (checked: never) => unknown };
  response: z.ZodType;
  shown: (message: ShownFields) => unknown;
  /** The characters of a value that a client has written, for bounds of memory; absent for a value of a fixed size. */
  chars?: (value: never) => number;
}

/** The fields of a message that its responses show. */
interface ShownFields {
  tags?: string[];
  externalId?: string;
  orderingKey?: string;
  deliverAtMs?: number;
  expiresAtMs?: number;
  removeAtMs?: number;
  createdAtMs: number;
}

const timeOrNull = (atMs: number | undefined): string | null =>
  atMs === undefined ? null : isoTime(atMs);

const MESSAGE_FIELDS = {
  tags: {
    contract: 'C7.12',
    request: messageTags.meta({
      description: 'Texts by which you find the message in the list of messages',
    }),
    header: 'posthorn-tags',
    fromHeader: (list) =>
      list
        .split(',')
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ''),
    given: {
      name: 'tags',
      value: (tags: string[]) => (tags.length > 0 ? tags : undefined),
    },
    response: z.array(z.string()),
    shown: ({ tags = [] }) => tags,
    chars: (tags: string[]) => tags.reduce((sum, tag) => sum + tag.length, 0),
  },
  externalId: {
    contract: 'C7.12',
    request: externalId.meta({
      description: 'Your own id of the message. Several messages may have the same',
    }),
    header: 'posthorn-external-id',
    response: z.string().nullable(),
    shown: (message) => message.externalId ?? null,
    chars: (id: string) => id.length,
  },
  orderingKey: {
    contract: 'C29.1',
    request: orderingKey.meta({
      description:
        'Deliveries of messages with the same key to a webhook with `ordering` follow each other. Not together with `deliverAt`',
    }),
    header: 'posthorn-ordering-key',
    response: z.string().nullable(),
    shown: (message) => message.orderingKey ?? null,
    chars: (key: string) => key.length,
  },
  deliverAt: {
    contract: 'C7.19',
    request: timeText.meta({
      description:
        'No attempt begins before it: a second to 30 days in the future, and earlier than `expiresAt`',
    }),
    header: 'posthorn-deliver-at',
    given: { name: 'deliverAtMs', value: (time: string) => Date.parse(time) },
    response: timeField.nullable(),
    shown: ({ deliverAtMs }) => timeOrNull(deliverAtMs),
  },
  expiresAt: {
    contract: 'C7.15',
    request: timeText.meta({
      description:
        'No attempt begins from then on: deliveries that are pending are cancelled. In the future',
    }),
    header: 'posthorn-expires-at',
    given: { name: 'expiresAtMs', value: (time: string) => Date.parse(time) },
    response: timeField.nullable(),
    shown: ({ expiresAtMs }) => timeOrNull(expiresAtMs),
  },
  retentionDays: {
    contract: 'C7.16',
    request: retentionDays.meta({
      description:
        'The message, its deliveries and their attempts are removed so many days after its creation. Not more than the installation keeps others',
    }),
    header: 'posthorn-retention-days',
    // No schema takes NaN.
    fromHeader: (digits) => (/^\d{1,9}$/.test(digits) ? Number(digits) : NaN),
    response: z.int().nullable().meta({
      description:
        'As the client sent it; null for as long as messages of the installation are kept',
    }),
    shown: ({ removeAtMs, createdAtMs }) =>
      removeAtMs === undefined ? null : Math.round((removeAtMs - createdAtMs) / DAY_MS),
  },
} as const satisfies Record<string, FieldRule>;

type Fields = typeof MESSAGE_FIELDS;
type FieldName = keyof Fields;

/** The name that a field has in a message. */
type NameOf<Field extends FieldName> = Fields[Field] extends {
  given: { name: infer Name extends string };
}
  ? Name
  : Field;

type ValueOf<Field extends FieldName> = Fields[Field] extends {
  given: { value: (checked: never) => infer Value };
}
  ? Exclude<Value, undefined>
  : z.output<Fields[Field]['request']>;

/** The fields that a client has given, in the form of a message. Absent for none. Times are in milliseconds since 1970. */
export type GivenFields = { [Field in FieldName as NameOf<Field>]?: ValueOf<Field> };

/** The fields that a message, and its document in MongoDB, keep as they were given. The others decide something. */
export type KeptFields = Omit<GivenFields, 'deliverAtMs' | 'expiresAtMs' | 'retentionDays'>;

type RequestShape = { [Field in FieldName]: Fields[Field]['request'] };
type ResponseShape = { [Field in FieldName]: Fields[Field]['response'] };
/** The fields in a response. */
export type ShownMessageFields = { [Field in FieldName]: z.output<Fields[Field]['response']> };

const RULES = Object.entries(MESSAGE_FIELDS) as [FieldName, FieldRule][];

const eachField = (valueOf: (rule: FieldRule) => unknown): object =>
  Object.fromEntries(RULES.map(([name, rule]) => [name, valueOf(rule)]));

const sameText = (text: string): unknown => text;

export const messageRequestShape = eachField(({ request }) => request) as RequestShape;
export const messageResponseShape = eachField(({ response }) => response) as ResponseShape;

/** The fields with the headers that ingested records have for them. */
export const messageHeaders: readonly {
  field: FieldName;
  header: string;
  schema: z.ZodType;
  fromHeader: (text: string) => unknown;
}[] = RULES.map(([field, { header, request: schema, fromHeader = sameText }]) => ({
  field,
  header,
  schema,
  fromHeader,
}));

/** Returns what the checked fields of a request, or of the headers of a record, give the message. */
export function givenIn(checked: Partial<Record<FieldName, unknown>>): GivenFields {
  const given: Record<string, unknown> = {};
  for (const [field, rule] of RULES) {
    const value = checked[field];
    if (value === undefined) continue;
    const { name, value: valueOf } = rule.given ?? { name: field, value: (same: unknown) => same };
    const inMessage = valueOf(value as never);
    if (inMessage !== undefined) given[name] = inMessage;
  }
  return given;
}

/** The two fields that a message has not both of: a later time is another order (docs/contract.md C29.1). */
export const EXCLUSIVE_FIELDS = ['orderingKey', 'deliverAt'] as const satisfies FieldName[];
export const EXCLUSIVE_PROBLEM = 'must not be given together with orderingKey';

/** Returns the fields as responses show them. */
export function shownFields(message: ShownFields): ShownMessageFields {
  return Object.fromEntries(
    RULES.map(([name, { shown }]) => [name, shown(message)]),
  ) as ShownMessageFields;
}

/** Returns the characters that a client has written into these fields. */
export function charsOfFields(kept: KeptFields): number {
  let chars = 0;
  for (const [field, { chars: charsOf }] of RULES) {
    const value = kept[field as keyof KeptFields];
    if (charsOf && value !== undefined) chars += charsOf(value as never);
  }
  return chars;
}
