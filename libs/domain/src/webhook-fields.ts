import { z } from 'zod';
import { authFieldsOf, authMethodSchema, maskedAuth } from './auth-methods.ts';
import type { Hold } from './waiting.ts';
import type { EgressPolicy } from './egress.ts';
import {
  describeTls,
  type EndpointTls,
  type TlsChecks,
  tlsResponse,
  tlsText,
} from './endpoint-tls.ts';
import { filterField, filterText, shownFilter } from './parse-filter.ts';
import {
  customHeaders,
  describeHold,
  eventTypeSelectors,
  finalStatusCodes,
  type Header,
  headerFields,
  heldField,
  idField,
  idText,
  MASK,
  maskedHeader,
  metadataField,
  metadataOf,
  metadataText,
  numberOrNull,
  optionalFields,
  removableFields,
  signatureHeaders,
  text,
  textOf,
  uid,
  urlText,
  webhookSecret,
} from './field-types.ts';

/**
 * The fields of a webhook, each once. From this table follow the type `Webhook`, the schemas of requests and
 * responses, the defaults, what is sealed in the database, what the audit log shows, and docs/webhook-fields.md.
 */
export interface FieldRule {
  /** The rules in docs/contract.md. */
  contract: string;
  /**
   * The value of a webhook. Unless the rules below say otherwise, requests and responses have it in the same form.
   */
  value: z.ZodType;
  /** `never`: Posthorn sets the field. `authMethod` is given by the fields of auth-methods.ts. */
  given: 'at creation' | 'always' | 'never';
  request?: (rules: RequestRules) => z.ZodType;
  isRequired?: true;
  /** An update cannot take the field away, although a webhook may be created without it. */
  isKept?: true;
  /**
   * The value of a webhook that is created without the field, of one from which it was taken away, and of one that was
   * stored before there was the field.
   */
  initially?: (given: { url: string }) => unknown;
  /** `by itself`: in the responses of create and get, not in lists. */
  shown: 'everywhere' | 'by itself' | 'never';
  response?: z.ZodType;
  show?: (value: never) => unknown;
  /** The value for people who see no secrets; absent for a field that they see. */
  mask?: (value: never) => unknown;
  /** Only the holder of an encryption key can read the stored value. */
  sealed?: 'as text' | 'as JSON';
  /**
   * The entry of the audit log for a change: both values, them without the values of the URL's query, or only that the
   * field changed; the same for each header or each field of the method of authentication. `origin`: that the field
   * changed, and whether the client chose the value.
   */
  audit: 'shown' | 'url' | 'hidden' | 'origin' | 'each header' | 'each field' | 'never';
}

/** The settings that the schemas of requests depend on. */
export interface RequestRules extends TlsChecks {
  /** Decides which URLs are allowed. */
  policy: EgressPolicy;
}

const MAX_NAME_CHARS = 100;
/** The default of DELIVERY_TIMEOUT_MS. */
export const MAX_TIMEOUT_SECONDS = 15;
/** The attempts of the default schedule. */
const MAX_ATTEMPTS = 7;

const WEBHOOK_FIELDS = {
  projectId: {
    contract: 'C6.1',
    value: z.string(),
    given: 'at creation',
    request: () => idText('proj'),
    shown: 'never',
    audit: 'shown',
  },
  /** Null for a global webhook, which has an environment id instead. */
  appId: {
    contract: 'C6.1',
    value: z.string().nullable(),
    given: 'at creation',
    request: () => idText('app'),
    initially: () => null,
    shown: 'everywhere',
    response: idField('app').nullable().meta({
      description: 'The app whose messages it gets; null for a global webhook',
    }),
    audit: 'shown',
  },
  environmentId: {
    contract: 'C6.1',
    value: z.string().nullable(),
    given: 'at creation',
    request: () => textOf('A-Za-z0-9_-', 64, 'letters, digits, _ or -').meta({ example: 'live' }),
    initially: () => null,
    shown: 'never',
    audit: 'shown',
  },
  name: {
    contract: 'C6.2',
    value: z.string(),
    given: 'always',
    request: () => text(2, MAX_NAME_CHARS).meta({ example: 'Orders' }),
    isKept: true,
    initially: ({ url }) => new URL(url).host.slice(0, MAX_NAME_CHARS),
    shown: 'everywhere',
    audit: 'shown',
  },
  url: {
    contract: 'C6.3',
    value: z.string(),
    given: 'always',
    request: ({ policy }) => urlText(policy),
    isRequired: true,
    shown: 'everywhere',
    audit: 'url',
  },
  /** Key of the Standard Webhooks signature. Generated unless it is given. */
  secret: {
    contract: 'C6.9',
    value: z.string().meta({
      description:
        'Verifies deliveries: `whsec_` and the base64 of 24 to 64 bytes; 32 random ones unless it was given',
    }),
    given: 'at creation',
    request: () =>
      webhookSecret.meta({
        description:
          'Verifies deliveries, such as that of an endpoint which another service has delivered to: `whsec_` and the base64 of 24 to 64 bytes. 32 random ones unless given',
      }),
    shown: 'everywhere',
    mask: () => MASK,
    sealed: 'as text',
    audit: 'origin',
  },
  /** A secret that was rotated. It signs beside the new one until its grace period ends, which is sealed too. */
  previousSecret: {
    contract: 'C9.8',
    value: z.object({ secret: z.string(), expiresAtMs: z.int() }).nullable(),
    given: 'never',
    shown: 'never',
    mask: () => null,
    sealed: 'as JSON',
    audit: 'never',
  },
  /**
   * The ids of the newest rotations of the secret, the newest last; null before the first. A request that is repeated
   * because its response was not stored has the id of the first one, and does not rotate again.
   */
  rotations: {
    contract: 'C8.8',
    value: z.array(z.string()).nullable(),
    given: 'never',
    initially: () => null,
    shown: 'never',
    audit: 'never',
  },
  /** The families of headers that carry id, timestamp and signature. */
  signatureHeaders: {
    contract: 'C6.19',
    value: signatureHeaders,
    given: 'always',
    initially: () => ['webhook'],
    shown: 'everywhere',
    audit: 'shown',
  },
  customHeaders: {
    contract: 'C6.6',
    value: headerFields,
    given: 'always',
    request: () => customHeaders,
    initially: () => [],
    shown: 'everywhere',
    mask: (headers: Header[]) => headers.map(maskedHeader),
    sealed: 'as JSON',
    audit: 'each header',
  },
  authMethod: {
    contract: 'C6.5',
    value: authMethodSchema,
    given: 'never',
    shown: 'by itself',
    mask: maskedAuth,
    sealed: 'as JSON',
    audit: 'each field',
  },
  /** Null for the defaults. */
  tls: {
    contract: 'C6.17',
    value: z.custom<EndpointTls>().nullable(),
    given: 'always',
    request: tlsText,
    initially: () => null,
    shown: 'by itself',
    response: tlsResponse,
    show: describeTls,
    sealed: 'as JSON',
    audit: 'hidden',
  },
  /** The event types that it receives; empty for all. */
  eventTypes: {
    contract: 'C6.11',
    value: eventTypeSelectors,
    given: 'always',
    initially: () => [],
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Conditions on messages to its app, as JSON text; null without any. */
  filter: {
    contract: 'C27.1',
    value: z.string().nullable(),
    given: 'always',
    request: () => filterText,
    initially: () => null,
    shown: 'everywhere',
    response: filterField,
    show: shownFilter,
    audit: 'shown',
  },
  disabled: {
    contract: 'C6.12',
    value: z.boolean('must be true or false'),
    given: 'always',
    initially: () => false,
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Pending deliveries that were created before this time, in milliseconds since 1970, are cancelled. */
  cancelBeforeMs: {
    contract: 'C25.2',
    value: z.int().nullable(),
    given: 'never',
    initially: () => null,
    shown: 'never',
    audit: 'never',
  },
  /** Why Posthorn disabled the webhook; null unless it did. */
  disabledReason: {
    contract: 'C6.12',
    value: z.enum(['gone', 'control_header', 'failing']).nullable().meta({
      description:
        'Why Posthorn disabled the webhook: its endpoint answered 410 (`gone`) or asked for it with a response header (`control_header`), or all attempts failed for long (`failing`). Null unless Posthorn did',
    }),
    given: 'never',
    initially: () => null,
    shown: 'everywhere',
    audit: 'shown',
  },
  rateLimitPerSecond: {
    contract: 'C6.13',
    value: numberOrNull(1, 10_000).meta({
      description: 'Most attempts per second; null for no limit',
    }),
    given: 'always',
    initially: () => null,
    shown: 'everywhere',
    audit: 'shown',
  },
  timeoutSeconds: {
    contract: 'C6.18',
    value: numberOrNull(1, MAX_TIMEOUT_SECONDS).meta({
      description:
        'Time for one attempt, from the look-up of the host to the end of the response; null for that of the service',
      example: 10,
    }),
    given: 'always',
    initially: () => null,
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Null while it is not on hold. Posthorn also sets it to null after its end (libs/domain/src/waiting.ts). */
  held: {
    contract: 'C24.1',
    value: z.custom<Hold>().nullable(),
    given: 'never',
    initially: () => null,
    shown: 'everywhere',
    response: heldField,
    show: describeHold,
    audit: 'never',
  },
  maxAttempts: {
    contract: 'C6.20',
    value: numberOrNull(1, MAX_ATTEMPTS).meta({
      description:
        'Attempts of a delivery, the first ones of the schedule; null for all of the schedule',
      example: 3,
    }),
    given: 'always',
    initially: () => null,
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Null for none. */
  finalStatusCodes: {
    contract: 'C6.21',
    value: finalStatusCodes,
    given: 'always',
    initially: () => null,
    shown: 'everywhere',
    audit: 'shown',
  },
  onGone: {
    contract: 'C6.22',
    value: z.enum(['retry', 'disable'], 'must be retry or disable').meta({
      description:
        'After status 410: `retry` as after any failure, or `disable` the webhook and end the delivery',
    }),
    given: 'always',
    initially: () => 'retry',
    shown: 'everywhere',
    audit: 'shown',
  },
  obeyControlHeaders: {
    contract: 'C6.23',
    value: z.boolean('must be true or false').meta({
      description:
        'Whether the endpoint may control its deliveries by the response header `webhook-delivery`: `disable` disables the webhook, `abort-message` ends a failed delivery',
    }),
    given: 'always',
    initially: () => false,
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Whether deliveries of messages with the same ordering key wait for each other. */
  ordering: {
    contract: 'C29.2',
    value: z.enum(['none', 'block', 'skip'], 'must be none, block or skip').meta({
      description:
        'Whether a delivery waits until the earlier ones with its `orderingKey` have ended: `none` for no order, `block` waits for an exhausted delivery until it is skipped or sent again, `skip` goes on behind it',
    }),
    given: 'always',
    initially: () => 'none',
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Null without one. */
  uid: {
    contract: 'C5.12',
    value: uid.nullable(),
    given: 'always',
    request: () => uid,
    initially: () => null,
    shown: 'everywhere',
    audit: 'shown',
  },
  /** Null without any. Deliveries do not need it, so targets and dispatchers read webhooks without it. */
  metadata: {
    contract: 'C5.14',
    value: z.string().nullable(),
    given: 'always',
    request: () => metadataText,
    initially: () => null,
    shown: 'everywhere',
    response: metadataField,
    show: metadataOf,
    audit: 'hidden',
  },
} as const satisfies Record<string, FieldRule>;

type Table = typeof WEBHOOK_FIELDS;
type FieldName = keyof Table;

/** The values of all fields. */
export type FieldValues = { [Name in FieldName]: z.infer<Table[Name]['value']> };

/** The table without the types of the single fields. */
export const FIELD_RULES = Object.entries(WEBHOOK_FIELDS) as [FieldName, FieldRule][];

type Entry = [name: string, value: unknown];

type NamesWith<Part> = {
  [Name in FieldName]: Table[Name] extends Part ? Name : never;
}[FieldName];
type RequestSchema<Name extends FieldName> = Table[Name] extends {
  request: (rules: RequestRules) => infer Schema extends z.ZodType;
}
  ? Schema
  : Table[Name]['value'];
type KeptName = NamesWith<
  { given: 'always'; isRequired: true } | { given: 'always'; isKept: true }
>;
type RemovableName = Exclude<NamesWith<{ given: 'always' }>, KeptName>;
type UpdateShape = {
  [Name in KeptName]: z.ZodExactOptional<RequestSchema<Name>>;
} & {
  [Name in RemovableName]: z.ZodExactOptional<z.ZodNullable<RequestSchema<Name>>>;
};
type CreateShape = {
  [Name in NamesWith<{ isRequired: true }>]: RequestSchema<Name>;
} & {
  [Name in Exclude<FieldName, NamesWith<{ isRequired: true } | { given: 'never' }>>]: z.ZodOptional<
    RequestSchema<Name>
  >;
};

/** Returns the fields of a request that creates a webhook, without those of the method of authentication. */
export function createShape(rules: RequestRules): CreateShape {
  const given = FIELD_RULES.filter(([, rule]) => rule.given !== 'never');
  const isRequired = ([, rule]: [FieldName, FieldRule]): boolean => rule.isRequired === true;
  const others = given.filter((each) => !isRequired(each));
  return {
    ...schemasOf(given.filter(isRequired), rules),
    ...optionalFields(schemasOf(others, rules)),
  } as CreateShape;
}

/** Returns the fields of a request that changes a webhook, without those of the method of authentication. */
export function updateShape(rules: RequestRules): UpdateShape {
  const given = FIELD_RULES.filter(([, rule]) => rule.given === 'always');
  const isKept = ([, { isRequired, isKept }]: [FieldName, FieldRule]): boolean =>
    isRequired === true || isKept === true;
  const kept = Object.entries(schemasOf(given.filter(isKept), rules));
  return {
    ...Object.fromEntries(kept.map(([name, schema]) => [name, schema.exactOptional()])),
    ...removableFields(
      schemasOf(
        given.filter((each) => !isKept(each)),
        rules,
      ),
    ),
  } as UpdateShape;
}

function schemasOf(
  fields: readonly [FieldName, FieldRule][],
  rules: RequestRules,
): Record<string, z.ZodType> {
  return Object.fromEntries(
    fields.map(([name, { value, request }]) => [name, request?.(rules) ?? value]),
  );
}

/** The fields of a checked request that changes a webhook. */
type ChangedFields = z.infer<z.ZodObject<UpdateShape>>;
/** The values that an update sets. */
type SetValues = Partial<Pick<FieldValues, NamesWith<{ given: 'always' }>>>;

/** Returns what an update sets: a field that it takes away gets the value of a webhook that was created without it. */
export function changedValues(changes: ChangedFields, webhook: { url: string }): SetValues {
  const set = FIELD_RULES.flatMap(([name, rule]): Entry[] => {
    const value = changes[name as keyof ChangedFields];
    if (value === undefined) return [];
    return [[name, value ?? rule.initially?.(webhook)]];
  });
  return Object.fromEntries(set);
}

/** The fields of a checked request that creates a webhook. */
export type GivenFields = z.infer<z.ZodObject<CreateShape>>;

/** Returns the fields of a new webhook that requests may give. A webhook of an app gets its project besides. */
export function newValues(given: GivenFields): Omit<FieldValues, NamesWith<{ given: 'never' }>> {
  const rules = FIELD_RULES.filter(([, rule]) => rule.given !== 'never');
  const values = rules.map(([name, rule]) => [
    name,
    given[name as keyof GivenFields] ?? rule.initially?.(given),
  ]);
  return Object.fromEntries(values) as ReturnType<typeof newValues>;
}

/** `list`: as lists, updates and rotations return a webhook. `single`: as create and get do. */
export type ResponseKind = 'list' | 'single';

const RESPONSE_RULES = {
  list: FIELD_RULES.filter(([, { shown }]) => shown === 'everywhere'),
  single: FIELD_RULES.filter(([, { shown }]) => shown !== 'never'),
};

/** Returns the schemas of the fields in responses. */
export function responseShape(kind: ResponseKind): Record<string, z.ZodType> {
  const rules = RESPONSE_RULES[kind];
  return Object.fromEntries(rules.map(([name, { value, response }]) => [name, response ?? value]));
}

/** Returns the fields as responses have them. */
export function responseFields(values: FieldValues, kind: ResponseKind): Record<string, unknown> {
  const fields = RESPONSE_RULES[kind].map(([name, { show }]): Entry => {
    const value = values[name];
    return [name, show ? show(value as never) : value];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

/** Returns the webhook with everything masked that signs or authenticates its deliveries. */
export function withoutSecrets<Webhook extends FieldValues>(webhook: Webhook): Webhook {
  const masked = FIELD_RULES.flatMap(([name, { mask }]): Entry[] =>
    mask ? [[name, mask(webhook[name] as never)]] : [],
  );
  return { ...webhook, ...Object.fromEntries(masked) };
}

/**
 * Returns the audited fields of a webhook, or of a part of it, by the names that requests give them, secrets
 * included: only for `changesBetween`.
 */
export function auditedFields({
  authMethod,
  ...values
}: Partial<FieldValues>): Readonly<Record<string, unknown>> {
  const names = fieldsAudited('shown', 'url', 'hidden', 'origin', 'each header');
  const fields = names.map((name): Entry => [name, values[name as keyof typeof values]]);
  return { ...Object.fromEntries(fields), ...(authMethod && authFieldsOf(authMethod)) };
}

/** The names of the fields that are sealed in the database, each by itself. */
export type SealedName = NamesWith<{ sealed: string }>;

/** The sealed texts of a document; a field without a value is null or absent. */
export type SealedTexts = {
  [Name in SealedName as null extends FieldValues[Name] ? never : Name]: string;
} & { [Name in SealedName as null extends FieldValues[Name] ? Name : never]?: string | null };

/** The other fields, as the database has them. */
export type OpenValues = Omit<FieldValues, SealedName>;

/** Returns the sealed fields that have a value, as texts. */
export function textsToSeal(values: FieldValues): [SealedName, string][] {
  return SEALED_RULES.flatMap(([name, { sealed }]) => {
    const value = values[name];
    if (value === null) return [];
    return [[name, sealed === 'as text' ? (value as string) : JSON.stringify(value)]];
  });
}

/**
 * Returns the values of the other fields. A field that the webhook was stored without has its initial value; null without
 * one.
 */
export function openValues(stored: Partial<OpenValues> & Pick<OpenValues, 'url'>): OpenValues {
  const values = OPEN_RULES.map(([name, { initially }]) => [
    name,
    stored[name] ?? initially?.(stored) ?? null,
  ]);
  return Object.fromEntries(values) as OpenValues;
}

/** The reverse of `textsToSeal`. `open` returns the text of a sealed value, and throws when it cannot. */
export function unsealedValues(
  texts: SealedTexts,
  open: (name: SealedName, sealed: string) => string,
): Pick<FieldValues, SealedName> {
  const values = SEALED_RULES.map(([name, { sealed }]) => {
    const stored = texts[name] ?? null;
    if (stored === null) return [name, null];
    const text = open(name, stored);
    // A text that opens was written by `textsToSeal`, so its JSON has the right shape.
    return [name, sealed === 'as text' ? text : (JSON.parse(text) as unknown)];
  });
  return Object.fromEntries(values) as Pick<FieldValues, SealedName>;
}

/** The shape of the sealed texts: the database may hold anything. */
export function areSealedTexts(sealed: unknown): sealed is SealedTexts {
  return SEALED_SCHEMA.safeParse(sealed).success;
}

const SEALED_RULES = FIELD_RULES.filter(([, { sealed }]) => sealed) as [SealedName, FieldRule][];
const OPEN_RULES = FIELD_RULES.filter(([, { sealed }]) => !sealed) as [
  keyof OpenValues,
  FieldRule,
][];

const SEALED_SCHEMA = z.object(
  Object.fromEntries(
    SEALED_RULES.map(([name, { value }]) => [
      name,
      value.safeParse(null).success ? z.string().nullish() : z.string(),
    ]),
  ),
);

/** The names of the fields of whose changes the audit log has this much. */
export function fieldsAudited(...audits: FieldRule['audit'][]): string[] {
  return FIELD_RULES.filter(([, { audit }]) => audits.includes(audit)).map(([name]) => name);
}
