import { z } from 'zod';
import type { Hold } from './waiting.ts';
import { type EgressPolicy, refusalOfUrl } from './egress.ts';
import { idPattern, type IdPrefix } from './ids.ts';

/*
 * The kinds of fields that requests and responses of the API have. Where a check is code, `meta` states it as JSON
 * Schema beside it.
 */

/** Replaces a value that must not be shown. */
export const MASK = '********';

/**
 * Text of a bounded length in characters. JSON Schema counts code points; zod alone counts UTF-16 units,
 * and an emoji has two.
 */
export function text(minChars: number, maxChars: number) {
  const problem =
    minChars === 0
      ? `must have at most ${maxChars} characters`
      : `must have ${minChars} to ${maxChars} characters`;
  const fits = (given: string): boolean => {
    const chars = given.length > 2 * maxChars ? given.length : Array.from(given).length;
    return chars >= minChars && chars <= maxChars;
  };
  return z
    .string('must be text')
    .refine(fits, problem)
    .meta({ ...(minChars > 0 && { minLength: minChars }), maxLength: maxChars });
}

/** Text of 1 to `maxChars` characters of `chars`, the inside of a character class; `words` name them. */
export function textOf(chars: string, maxChars: number, words: string) {
  return z
    .string('must be text')
    .regex(new RegExp(`^[${chars}]{1,${maxChars}}$`), `must be 1 to ${maxChars} ${words}`)
    .meta({ minLength: 1, maxLength: maxChars });
}

const tooMany = (max: number): string => `must have at most ${max} entries`;

/** A list of at most `max` entries. */
export function listOf<Entry extends z.ZodType>(entry: Entry, max: number, problem: string) {
  return z.array(entry, problem).max(max, tooMany(max));
}

/** A whole number within bounds. */
export function wholeNumber(
  min: number,
  max: number,
  problem = `must be a whole number from ${min} to ${max}`,
) {
  return z.int(problem).min(min, problem).max(max, problem);
}

const EXAMPLE_ULID = '01kdyx3m9e7r8s5tqv2wzcbn4a';

/** Returns a valid id, for the examples of the API document. */
export const exampleId = (prefix: IdPrefix): string => `${prefix}_${EXAMPLE_ULID}`;

/** The prefix of a uid in the place of an id. No id begins with it. */
export const UID_MARK = 'uid:';
const MAX_UID_CHARS = 128;

/** A name that the client gives to its own project, app or webhook. */
export const uid = textOf('A-Za-z0-9._-', MAX_UID_CHARS, 'letters, digits or . _ -').meta({
  description: 'Your own id. `uid:` and this text stand for the id wherever one is given',
  example: 'customer-17',
});

/** An id in a request, or a uid. It may be any text: what does not exist gets 404, not 400. */
export const idText = (prefix: IdPrefix) =>
  text(1, UID_MARK.length + MAX_UID_CHARS).meta({ example: exampleId(prefix) });

/** An id in a response. */
export const idField = (prefix: IdPrefix) =>
  z
    .string()
    .regex(idPattern(prefix))
    .meta({ description: `Id with the prefix \`${prefix}_\``, example: exampleId(prefix) });

/** A time in a response. */
export const timeField = z.iso.datetime({ precision: 3 }).meta({
  id: 'Time',
  description: 'ISO 8601 in UTC with milliseconds',
  example: '2026-01-31T09:30:00.000Z',
});

/** Returns ISO 8601 in UTC with milliseconds, as every time in the API. Takes milliseconds since 1970, or a date. */
export function isoTime(at: number | Date): string {
  return new Date(at).toISOString();
}

/** The hold of a webhook or an app in a response; null while there is none. */
export const heldField = z
  .object({
    since: timeField,
    until: timeField.nullable().meta({ description: 'When it ends by itself; null for never' }),
    reason: z.string().nullable(),
    by: z
      .string()
      .meta({ description: 'Id of the API key, or of the portal link, that asked for it' }),
  })
  .meta({ id: 'Hold' })
  .nullable()
  .meta({ description: 'Deliveries wait until it ends; null while there is none' });

export function describeHold(hold: Hold | null): z.infer<typeof heldField> {
  if (!hold) return null;
  const { sinceMs, untilMs, reason, by } = hold;
  return { since: isoTime(sinceMs), until: untilMs === null ? null : isoTime(untilMs), reason, by };
}

const MAX_METADATA = 20;
/** As JSON in UTF-8: 20 entries of ASCII have 11,000 at most. Lists count with it. */
export const MAX_METADATA_BYTES = 16_384;
const MAX_METADATA_KEY = 40;
const METADATA_PROBLEM = `must be an object of texts whose keys have 1 to ${MAX_METADATA_KEY} characters`;
const metadataKey = text(1, MAX_METADATA_KEY);
const metadataValue = text(0, 500);

/** Texts of the client about its own object. They are stored as JSON: `metadataOf` returns them again. */
export const metadataText = z
  .preprocess(
    (given, context) => {
      // zod leaves this key out, and JSON has it.
      const isLost =
        typeof given === 'object' && given !== null && Object.hasOwn(given, '__proto__');
      if (isLost) context.addIssue({ code: 'custom', message: 'must not have the key __proto__' });
      return given;
    },
    z
      .record(metadataKey, metadataValue, METADATA_PROBLEM)
      .refine((pairs) => Object.keys(pairs).length <= MAX_METADATA, tooMany(MAX_METADATA))
      .meta({ maxProperties: MAX_METADATA }),
  )
  .transform((pairs) => (Object.keys(pairs).length === 0 ? null : JSON.stringify(pairs)))
  .refine(
    (json) => json === null || Buffer.byteLength(json) <= MAX_METADATA_BYTES,
    `must have at most ${MAX_METADATA_BYTES} bytes as JSON`,
  )
  .meta({
    description: 'Texts that you want to find at the object. An update replaces all of them',
    example: { plan: 'gold' },
  });

/** The same in a response. */
export const metadataField = z.record(z.string(), z.string()).meta({
  description: 'The texts that were given; empty when none were',
  example: { plan: 'gold' },
});

/** Takes what `metadataText` has returned, or nothing. */
export function metadataOf(stored: string | null | undefined): Record<string, string> {
  return JSON.parse(stored ?? '{}') as Record<string, string>;
}

type Schemas = Readonly<Record<string, z.ZodType>>;
type OptionalFields<Shape extends Schemas> = {
  [Name in keyof Shape]: z.ZodOptional<Shape[Name]>;
};

/**
 * Returns the fields as a request takes them that creates something: each may be left out, and null means the same,
 * because many clients send null for it (docs/contract.md C1.13).
 */
export function optionalFields<Shape extends Schemas>(shape: Shape): OptionalFields<Shape> {
  const fields = Object.entries(shape).map(([name, schema]) => [
    name,
    orNull(schema)
      .optional()
      .transform((given) => given ?? undefined)
      .meta(describedAs(schema)),
  ]);
  return Object.fromEntries(fields) as OptionalFields<Shape>;
}

function orNull(schema: z.ZodType): z.ZodType {
  return schema.safeParse(null).success ? schema : schema.nullable();
}

/** Documentation looks for these beside the null that a field may be, and not within. */
function describedAs(schema: z.ZodType): Record<string, unknown> {
  const { description, example } = schema.meta() ?? {};
  return {
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example }),
  };
}

type RemovableFields<Shape extends Schemas> = {
  [Name in keyof Shape]: z.ZodExactOptional<z.ZodNullable<Shape[Name]>>;
};

/** Returns the fields as an update takes them: one that is left out stays, and null takes it away. */
export function removableFields<Shape extends Schemas>(shape: Shape): RemovableFields<Shape> {
  const fields = Object.entries(shape).map(([name, schema]) => [
    name,
    orNull(schema).meta(describedAs(schema)).exactOptional(),
  ]);
  return Object.fromEntries(fields) as RemovableFields<Shape>;
}

/** Headers in a response. */
export const headerFields = z.array(
  z.object({ key: z.string(), value: z.string() }).meta({ id: 'Header' }),
);

/** A header as the API shows it. */
export type Header = z.infer<typeof headerFields>[number];

const CREDENTIAL_NAME = /auth|token|secret|key|pass|session|credential/i;

/** Whether the name of a header suggests that its value is a credential. */
export const isCredentialHeader = (name: string): boolean => CREDENTIAL_NAME.test(name);

/** Returns the header as people see it. */
export function maskedHeader({ key, value }: Header): Header {
  return { key, value: isCredentialHeader(key) ? MASK : value };
}

const GROUP = '[A-Za-z0-9+/]{4}';
const ONE_BYTE = '[A-Za-z0-9+/][AQgw]==';
const TWO_BYTES = '[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=';

/**
 * A `secret` that a client chooses. Only the base64 that every library reads: Python's decoder refuses one without
 * padding, and of two spellings of the same bytes only one would be the key of docs/contract.md C9.4.
 */
export const webhookSecret = z
  .string('must be text')
  .regex(
    new RegExp(
      `^whsec_(?:(?:${GROUP}){8,20}(?:${ONE_BYTE}|${TWO_BYTES})?|(?:${GROUP}){21}(?:${ONE_BYTE})?)$`,
    ),
    'must be whsec_ and the base64, with its padding, of 24 to 64 bytes',
  )
  .meta({ example: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' });

/** A name that the client chooses, such as `order.paid`. */
export const eventType = textOf('A-Za-z0-9._:/-', 128, 'letters, digits or . _ : / -').meta({
  example: 'order.paid',
});

const SELECTOR = '(?:[A-Za-z0-9._:/-]{1,128}|[A-Za-z0-9._:/-]{0,126}[.:/]\\*)';
/** The same list in a query: its entries with commas between them. */
export const EVENT_TYPE_SELECTORS = new RegExp(`^${SELECTOR}(?:,${SELECTOR})*$`);

/** Event types of messages: one by its name, or by `order.*` all that begin with `order.`. */
export const eventTypeSelector = z
  .string('must be text')
  .regex(new RegExp(`^${SELECTOR}$`), {
    error: ({ input }) =>
      input === '*'
        ? 'selects no event type; an empty list selects all'
        : 'must be 1 to 128 letters, digits or . _ : / -, with * only after . : or / at its end',
  })
  .meta({ minLength: 1, maxLength: 128, example: 'order.*' });

const MAX_SELECTORS = 100;

export const eventTypeSelectors = listOf(
  eventTypeSelector,
  MAX_SELECTORS,
  'must be a list of event types',
).meta({
  description:
    'Event types to deliver: names, or beginnings such as `order.*`. An empty list selects all messages of the app',
});

/** A text by which the client finds messages. */
export const messageTag = text(1, 128).meta({ example: 'order-17' });

const MAX_TAGS = 5;

export const messageTags = listOf(messageTag, MAX_TAGS, 'must be a list of text')
  .refine((tags) => new Set(tags).size === tags.length, 'has a tag twice')
  .meta({ uniqueItems: true });

/** The client's own id of a message. */
export const externalId = text(1, 256).meta({ example: 'evt-2026-000017' });

/** ISO 8601 with a zone. */
export const timeText = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2026-01-31T09:30:00.000Z' })
  .meta({ example: '2026-01-31T09:30:00.000Z' });

/** Ten years: how long messages are kept is less. */
const MAX_RETENTION_DAYS = 3_650;

/** For how long a message is kept. */
export const retentionDays = wholeNumber(1, MAX_RETENTION_DAYS).meta({ example: 7 });

/** RFC 9110, 5.6.2: the characters of a header name. */
const MAX_HEADER_NAME_CHARS = 128;
const HEADER_NAME_PATTERN = `^[!#$%&'*+.^_\`|~0-9A-Za-z-]{1,${MAX_HEADER_NAME_CHARS}}$`;
const HEADER_NAME = new RegExp(HEADER_NAME_PATTERN);

/** Headers that a client may not set, in upper or lower case: names, and prefixes of names, in lower case. */
// prettier-ignore
export const REFUSED_HEADERS = {
  names: [
    // The sender sets connection, framing and routing.
    'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host',
    'cookie', 'expect', 'via', 'x-real-ip', 'forwarded', 'http2-settings',
    // These unlock the metadata services of clouds.
    'metadata', 'metadata-flavor', 'x-google-metadata-request',
    // Posthorn sets these itself.
    'user-agent', 'traceparent', 'tracestate',
  ],
  prefixes: [
    'proxy-', 'x-forwarded-', 'content-', 'webhook-', 'svix-', 'x-aws-ec2-metadata-token',
  ],
};
const REFUSED_NAMES: ReadonlySet<string> = new Set(REFUSED_HEADERS.names);

/** Returns why a client may not set the header; null when it may. */
export function refusalOfHeaderName(name: string): string | null {
  if (!HEADER_NAME.test(name)) {
    return `must be an HTTP header name of at most ${MAX_HEADER_NAME_CHARS} characters`;
  }
  const lower = name.toLowerCase();
  const isReserved =
    REFUSED_NAMES.has(lower) || REFUSED_HEADERS.prefixes.some((prefix) => lower.startsWith(prefix));
  return isReserved ? 'is a header that the service or the connection sets' : null;
}

/** A header that a client may set. `authorization` is refused only where the method of authentication sets it. */
export const headerName = z
  .string('must be text')
  .superRefine((name, context) => {
    const refusal = refusalOfHeaderName(name);
    if (refusal) context.addIssue({ code: 'custom', message: refusal });
  })
  .meta({
    id: 'HeaderName',
    pattern: HEADER_NAME_PATTERN,
    not: { pattern: refusedNamePattern() },
    description: 'Name of an HTTP header that neither Posthorn nor the connection sets',
    example: 'X-Tenant',
  });

function refusedNamePattern(): string {
  const { names, prefixes } = REFUSED_HEADERS;
  const whole = names.map((name) => `${inAnyCase(name)}$`);
  return `^(${[...whole, ...prefixes.map(inAnyCase)].join('|')})`;
}

/** Returns a pattern of one header name in any case. */
export function sameNamePattern(name: string): string {
  return `^${inAnyCase(name)}$`;
}

/** JSON Schema patterns have no flag to ignore case. */
function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`);
}

/**
 * Printable Latin-1 without tabs, so that CR, LF and NUL can never reach the wire, and without a space at either end:
 * that is no part of a field value (RFC 9110, 5.5), so the receiver would get another one.
 */
const HEADER_VALUE_PATTERN =
  '^([\\x21-\\x7e\\xa0-\\xff]([\\x20-\\x7e\\xa0-\\xff]*[\\x21-\\x7e\\xa0-\\xff])?)?$';
const MAX_HEADER_VALUE_CHARS = 4_096;
const HEADER_VALUE = new RegExp(HEADER_VALUE_PATTERN);

export function isHeaderValue(value: string): boolean {
  return value.length <= MAX_HEADER_VALUE_CHARS && HEADER_VALUE.test(value);
}

export const headerValue = z
  .string('must be text')
  .refine(
    isHeaderValue,
    `must be at most ${MAX_HEADER_VALUE_CHARS} printable Latin-1 characters without a space at either end`,
  )
  .meta({ maxLength: MAX_HEADER_VALUE_CHARS, pattern: HEADER_VALUE_PATTERN });

const MAX_CUSTOM_HEADERS = 20;

export const customHeaders = listOf(
  z.strictObject({ key: headerName, value: headerValue }).meta({ id: 'CustomHeader' }),
  MAX_CUSTOM_HEADERS,
  'must be a list of {key, value}',
)
  .superRefine((headers, context) => {
    const seen = new Set<string>();
    headers.forEach(({ key }, index) => {
      const lower = key.toLowerCase();
      if (seen.has(lower)) {
        const message = 'is given twice';
        context.addIssue({ code: 'custom', path: [index, 'key'], message });
      }
      seen.add(lower);
    });
  })
  .meta({
    description:
      'Names are unique regardless of case, and differ from the header that `authMethod` sets',
  });

const MAX_CREDENTIAL_CHARS = 1_024;
/** Of user names, passwords and other credentials: no control characters (RFC 7617, 2; RFC 6749, A). */
const CREDENTIAL_PATTERN = '^[^\\x00-\\x1f\\x7f]*$';
const CREDENTIAL = new RegExp(CREDENTIAL_PATTERN);

/**
 * False for text that would not arrive as it is: with control characters, or with half a character (a lone
 * surrogate).
 */
export function isCredential(text: string): boolean {
  return CREDENTIAL.test(text) && text.isWellFormed();
}

/** Text of 1 to `maxChars` characters without control characters. */
const plainText = (maxChars: number) =>
  text(1, maxChars)
    .refine(isCredential, 'must be text without control characters')
    .meta({ pattern: CREDENTIAL_PATTERN });

export const credential = plainText(MAX_CREDENTIAL_CHARS);

/** The key of messages whose deliveries to a webhook follow each other. */
export const orderingKey = plainText(256).meta({ example: 'order-17' });

/** A colon would end the user name (RFC 7617, section 2). */
export const userName = credential
  .refine((text) => !text.includes(':'), 'must not contain a colon')
  .meta({ pattern: CREDENTIAL_PATTERN.replace('[^', '[^:') });

/** A credential that is a header value by itself. */
export const headerCredential = text(1, MAX_CREDENTIAL_CHARS)
  .refine(isHeaderValue, 'must be printable Latin-1 without a space at either end')
  .meta({ pattern: HEADER_VALUE_PATTERN });

/** A key that both sides have and that is never sent, so that any text will do. */
export const sharedKey = text(1, MAX_CREDENTIAL_CHARS);

const MAX_URL_CHARS = 2_048;

/** A URL that `policy` allows as the destination of requests. */
export function urlText(policy: EgressPolicy) {
  const scheme = policy.allowHttp ? '[Hh][Tt][Tt][Pp][Ss]?' : '[Hh][Tt][Tt][Pp][Ss]';
  const schemes = policy.allowHttp
    ? 'An http or https URL (`EGRESS_ALLOW_HTTP` is set here)'
    : 'An https URL, or http too where the operator sets `EGRESS_ALLOW_HTTP`,';
  // No control characters and no backslashes: `URL` drops or replaces them, and another URL would be stored.
  const pattern = `^${scheme}://[^\\s/\\\\?#@\\x00-\\x1f\\x7f]+([/?][^#\\\\\\x00-\\x1f\\x7f]*)?$`;
  return text(0, MAX_URL_CHARS)
    .meta({
      pattern,
      example: 'https://example.com/webhooks',
      description: `${schemes} of a public host, without user, password and fragment. Stored percent-encoded, as it is sent`,
    })
    .transform((text, context) => {
      const url = URL.parse(text);
      const message = url ? problemOfUrl(url, policy) : 'must be an absolute URL';
      // `URL` also accepts what only a browser understands, such as `https:host` or leading spaces.
      const isPlain = new RegExp(pattern).test(text);
      if (!message && !isPlain)
        context.addIssue({ code: 'custom', message: 'must be http(s)://…' });
      if (message) context.addIssue({ code: 'custom', message });
      return url ? encodedUrl(url) : z.NEVER;
    });
}

function problemOfUrl(url: URL, policy: EgressPolicy): string | null {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https';
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password';
  if (url.href.includes('#')) return 'must not contain a fragment';
  // One more character for the path `/` that `URL` adds.
  if (encodedUrl(url).length > MAX_URL_CHARS + 1)
    return `must have at most ${MAX_URL_CHARS} characters once encoded`;
  switch (refusalOfUrl(url, policy)) {
    case 'scheme':
      return 'must be https';
    case 'port':
      return 'names a port that deliveries may not go to';
    case 'host':
    case 'address':
      return 'names a host that deliveries may not go to';
    case null:
      return null;
  }
}

/** The characters that a path or query may not have (RFC 3986, 3.3 and 3.4), and a `%` that encodes nothing. */
const NOT_ALLOWED = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]|%(?![0-9A-Fa-f]{2})/g;

/**
 * Returns an http or https URL, without user and fragment, as it is stored, shown and sent. `URL` leaves some
 * characters as they are that servers such as Tomcat refuse: `|`, `^`, `{`, `[` and others in a query, `|` and `[` in
 * a path.
 */
export function encodedUrl({ origin, pathname, search }: URL): string {
  return origin + (pathname + search).replace(NOT_ALLOWED, percentEncoded);
}

/** `URL` has encoded everything but ASCII. */
function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Null for no number. */
export function numberOrNull(min: number, max: number) {
  return wholeNumber(min, max, `must be a whole number from ${min} to ${max}, or null`).nullable();
}

export const signatureHeaders = z
  .array(
    z.enum(['webhook', 'svix'], 'must be webhook or svix'),
    'must be a list of webhook and svix',
  )
  .refine(
    (names) => names.includes('webhook') && new Set(names).size === names.length,
    'must have webhook, and no name twice',
  )
  .meta({
    minItems: 1,
    uniqueItems: true,
    contains: { const: 'webhook' },
    description:
      'The headers with id, timestamp and signature: `webhook-*`, and with `svix` also `svix-*` with the same values, for receivers that use a library of Svix',
    example: ['webhook'],
  });

const MAX_STATUS_CODES = 20;
/** Their meaning is to try again later. */
const ALWAYS_RETRIED = [408, 425, 429, 503];
const STATUS_PROBLEM = `must be a status from 400 to 599 except ${inWords(ALWAYS_RETRIED)}`;

function inWords(numbers: readonly number[]): string {
  return `${numbers.slice(0, -1).join(', ')} and ${numbers.at(-1) ?? ''}`;
}

export const finalStatusCodes = listOf(
  wholeNumber(400, 599, STATUS_PROBLEM)
    .refine((code) => !ALWAYS_RETRIED.includes(code), STATUS_PROBLEM)
    .meta({ not: { enum: ALWAYS_RETRIED } }),
  MAX_STATUS_CODES,
  'must be a list of statuses, or null',
)
  .min(1, 'must have an entry; null for none')
  .refine((codes) => new Set(codes).size === codes.length, 'must have no status twice')
  .meta({ uniqueItems: true })
  .nullable()
  .meta({
    description: `Statuses after which a delivery is not tried again; null for none. ${inWords(ALWAYS_RETRIED)} cannot be among them`,
    example: [400, 422],
  });
