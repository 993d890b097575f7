import { type EgressPolicy, refusalOfUrl } from '@posthorn/domain/egress.ts';
import { encodedUrl } from '@posthorn/domain/request/encoded-url.ts';
import {
  CREDENTIAL_PATTERN,
  HEADER_VALUE_PATTERN,
  isCredential,
  isHeaderValue,
  MAX_HEADER_VALUE_CHARS,
  refusalOfHeaderName,
  REFUSED_NAMES,
  REFUSED_PREFIXES,
} from '@posthorn/domain/request/delivery-headers.ts';
import {
  CLIENT_AUTHENTICATIONS,
  DEFAULT_HMAC_HEADER,
  SIGNATURE_ALGORITHMS,
} from '@posthorn/domain/webhook.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { z } from 'zod';
import type { AuthName } from '../webhooks/auth-method.ts';
import { tlsOf } from '../webhooks/endpoint-tls.ts';
import { idText, text } from './fields.ts';

const MAX_CUSTOM_HEADERS = 20;
const MAX_EVENT_TYPES = 100;

const headerValue = z
  .string('must be text')
  .refine(
    isHeaderValue,
    'must be at most 4096 printable Latin-1 characters without a space at either end',
  )
  .meta({ maxLength: MAX_HEADER_VALUE_CHARS, pattern: HEADER_VALUE_PATTERN });

/** Allows `authorization`: it is refused only where the method of authentication sets it. */
const headerName = z
  .string('must be text')
  .superRefine((name, context) => {
    const refusal = refusalOfHeaderName(name);
    if (refusal) context.addIssue({ code: 'custom', message: refusal });
  })
  .meta({
    id: 'HeaderName',
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
    not: { pattern: refusedNamePattern() },
    description: 'Name of an HTTP header that neither Posthorn nor the connection sets',
    example: 'X-Tenant',
  });

const customHeaders = z
  .array(z.strictObject({ key: headerName, value: headerValue }), 'must be a list of {key, value}')
  .max(MAX_CUSTOM_HEADERS, 'must have at most 20 entries')
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

const credential = text(1, MAX_CREDENTIAL_CHARS)
  .refine(isCredential, 'must be text without control characters')
  .meta({ pattern: CREDENTIAL_PATTERN });

/** A colon would end the user name (RFC 7617, section 2). */
const basicUser = credential
  .refine((text) => !text.includes(':'), 'must not contain a colon')
  .meta({ pattern: CREDENTIAL_PATTERN.replace('[^', '[^:') });

/** A name that the client chooses, such as `order.paid`. */
export const eventType = z
  .string('must be text')
  .regex(/^[A-Za-z0-9._:/-]{1,128}$/, 'must be 1 to 128 letters, digits or . _ : / -')
  .meta({ example: 'order.paid' });

/** The owner of a webhook; given at creation only. */
export const ownerFields = {
  appId: idText('app').optional(),
  projectId: idText('proj').optional(),
  environmentId: z
    .string('must be text')
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -')
    .optional()
    .meta({ example: 'live' }),
};

/** RFC 6749, section 3.3: names of visible ASCII without quotes and backslashes, with one space between them. */
const SCOPE = '^[!#-\\[\\]-~]+( [!#-\\[\\]-~]+)*$';

const scope = text(1, 1_024)
  .regex(new RegExp(SCOPE), 'must be scopes with one space between them')
  .meta({ pattern: SCOPE, example: 'orders.write' });

/** `policy` decides which token servers are allowed. */
function oauth2Fields(policy: EgressPolicy) {
  return {
    oauth2TokenUrl: urlField(policy).optional().meta({
      example: 'https://login.example.com/oauth2/token',
      description:
        'For `oauth2`: where access tokens are requested, with the client credentials grant. The rules are those of `url`',
    }),
    oauth2ClientId: credential.optional(),
    oauth2ClientSecret: credential.optional(),
    oauth2Scope: scope.nullable().optional(),
    oauth2Audience: credential.nullable().optional().meta({
      description: 'Sent as `audience`, which some token servers ask for; null for none',
    }),
    oauth2ClientAuthentication: z
      .enum(CLIENT_AUTHENTICATIONS, 'must be basic or post')
      .optional()
      .meta({
        description:
          'Whether id and secret are sent to the token server in `Authorization` (`basic`, the default) or in the body (`post`)',
      }),
  };
}

const AUTH_METHODS = ['hmac', 'basic', 'apiKey', 'oauth2'] as const;

/** The fields of all methods of authentication. */
export function authFields(policy: EgressPolicy) {
  return { ...STATIC_AUTH_FIELDS, ...oauth2Fields(policy) };
}

const STATIC_AUTH_FIELDS = {
  authMethod: z.enum(AUTH_METHODS, 'must be hmac, basic, apiKey or oauth2').optional(),
  basicAuthUsername: basicUser.optional(),
  basicAuthPassword: credential.optional(),
  apiKey: text(1, MAX_CREDENTIAL_CHARS)
    .refine(isHeaderValue, 'must be printable Latin-1 without a space at either end')
    .meta({ pattern: HEADER_VALUE_PATTERN })
    .optional(),
  apiKeyHeader: headerName.optional(),
  hmacHeader: headerName.meta({ not: { pattern: sameNamePattern('authorization') } }).optional(),
  // Both sides have it and it is never sent, so that any text will do.
  hmacSecret: text(1, MAX_CREDENTIAL_CHARS)
    .meta({
      description:
        'Key of the signature. Use 32 random bytes, at least 16, as text. Without it the `secret` of the webhook is the key, which has 32.',
    })
    .optional(),
  signatureAlgorithm: z
    .enum(SIGNATURE_ALGORITHMS, 'must be hmac-sha256 or ed25519')
    .optional()
    .meta({
      description:
        'For `hmac`: what signs the deliveries. `ed25519` signs with the key of your company, and receivers verify with its public key',
    }),
};

/** The other fields of a webhook. `policy` decides which URLs are allowed. */
export function webhookFields(policy: EgressPolicy) {
  return {
    url: urlField(policy),
    name: text(2, 100).meta({ example: 'Orders' }).optional(),
    customHeaders: customHeaders.optional(),
    tls: tlsField.optional(),
    eventTypes: z
      .array(eventType, 'must be a list of event types')
      .max(MAX_EVENT_TYPES, 'must have at most 100 entries')
      .optional()
      .meta({
        description: 'Event types to deliver. An empty list selects all messages of the app',
      }),
    disabled: z.boolean('must be true or false').optional(),
    rateLimitPerSecond: z
      .int('must be a whole number from 1 to 10000, or null')
      .min(1, 'must be a whole number from 1 to 10000, or null')
      .max(10_000, 'must be a whole number from 1 to 10000, or null')
      .nullable()
      .optional()
      .meta({ description: 'Most attempts per second; null for no limit' }),
  };
}

const MAX_URL_CHARS = 2_048;

/** A URL that deliveries may go to. `policy` decides which. */
function urlField(policy: EgressPolicy) {
  const scheme = policy.allowHttp ? '[Hh][Tt][Tt][Pp][Ss]?' : '[Hh][Tt][Tt][Pp][Ss]';
  // No control characters and no backslashes: `URL` drops or replaces them, and another URL would be stored.
  const pattern = `^${scheme}://[^\\s/\\\\?#@\\x00-\\x1f\\x7f]+([/?][^#\\\\\\x00-\\x1f\\x7f]*)?$`;
  return text(0, MAX_URL_CHARS)
    .meta({
      pattern,
      example: 'https://example.com/webhooks',
      description:
        'An http or https URL of a public host, without user, password and fragment. Stored percent-encoded, as it is sent',
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
    return 'must have at most 2048 characters once encoded';
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

/** The credential fields of each method of authentication. */
export const AUTH_FIELDS = {
  basic: ['basicAuthUsername', 'basicAuthPassword'],
  apiKey: ['apiKey', 'apiKeyHeader'],
  hmac: ['hmacHeader', 'hmacSecret', 'signatureAlgorithm'],
  oauth2: [
    'oauth2TokenUrl',
    'oauth2ClientId',
    'oauth2ClientSecret',
    'oauth2Scope',
    'oauth2Audience',
    'oauth2ClientAuthentication',
  ],
} as const satisfies Record<AuthName, readonly string[]>;

/** Those that a webhook which gets the method must be given. */
export const REQUIRED_FIELDS: Readonly<Record<AuthName, readonly string[]>> = {
  basic: AUTH_FIELDS.basic,
  apiKey: AUTH_FIELDS.apiKey,
  hmac: [],
  oauth2: ['oauth2TokenUrl', 'oauth2ClientId', 'oauth2ClientSecret'],
};

/** Those of `hmac` that only HMAC uses. */
export const SECRET_FIELDS = ['hmacHeader', 'hmacSecret'] as const;

const WITHOUT_SECRET_FIELDS = {
  if: {
    required: ['signatureAlgorithm'],
    properties: { signatureAlgorithm: { const: 'ed25519' } },
  },
  then: { properties: { hmacHeader: false, hmacSecret: false } },
};

const METHODS = ['basic', 'apiKey', 'hmac', 'oauth2'] as const;
/** All but the default. */
const NAMED_METHODS = ['basic', 'apiKey', 'oauth2'] as const;
const IS_NAMED = { anyOf: NAMED_METHODS.map(has) };
/** They set `Authorization`. */
const IS_AUTHORIZATION = { anyOf: [has('basic'), has('oauth2')] };

/** The rules between the fields of a new webhook, as far as JSON Schema can express them. */
export const CREATE_RULES = {
  oneOf: [
    { required: ['appId'], properties: { projectId: false, environmentId: false } },
    { required: ['projectId', 'environmentId'], properties: { appId: false } },
  ],
  allOf: [
    ...NAMED_METHODS.map((method) => ({
      if: has(method),
      then: { required: REQUIRED_FIELDS[method] },
      else: without(method),
    })),
    { if: IS_NAMED, then: without('hmac') },
    { if: IS_AUTHORIZATION, then: withoutCustomHeader('authorization') },
    {
      if: { not: { anyOf: [IS_NAMED, { required: ['hmacHeader'] }] } },
      then: withoutCustomHeader(DEFAULT_HMAC_HEADER),
    },
    WITHOUT_SECRET_FIELDS,
  ],
};

/** The rules between the fields of an update that hold for every webhook; the others depend on the stored one. */
export const UPDATE_RULES = {
  dependentSchemas: Object.fromEntries(
    METHODS.flatMap((method) => AUTH_FIELDS[method].map((field) => [field, onlyWith(method)])),
  ),
  allOf: [
    { if: IS_AUTHORIZATION, then: withoutCustomHeader('authorization') },
    WITHOUT_SECRET_FIELDS,
  ],
};

function has(method: AuthName): object {
  return { required: ['authMethod'], properties: { authMethod: { const: method } } };
}

function without(...methods: AuthName[]): { properties: Record<string, false> } {
  const fields = methods.flatMap((method) => [...AUTH_FIELDS[method]]);
  return { properties: Object.fromEntries(fields.map((field) => [field, false])) };
}

function onlyWith(method: AuthName): object {
  const { properties } = without(...METHODS.filter((other) => other !== method));
  const setsAuthorization = method === 'basic' || method === 'oauth2';
  const headers = setsAuthorization ? withoutCustomHeader('authorization').properties : {};
  return { properties: { authMethod: { const: method }, ...properties, ...headers } };
}

function withoutCustomHeader(name: string): { properties: { customHeaders: object } } {
  const key = { not: { pattern: sameNamePattern(name) } };
  return { properties: { customHeaders: { items: { properties: { key } } } } };
}

/** Returns a pattern of the header names that are refused. */
function refusedNamePattern(): string {
  const whole = [...REFUSED_NAMES].map((name) => `${inAnyCase(name)}$`);
  return `^(${[...whole, ...REFUSED_PREFIXES.map(inAnyCase)].join('|')})`;
}

/** Returns a pattern of one header name in any case. */
function sameNamePattern(name: string): string {
  return `^${inAnyCase(name)}$`;
}

/** JSON Schema patterns have no flag to ignore case. */
function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/gi, (letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`);
}

const MAX_PEM_CHARS = 8_192;

const pem = text(1, MAX_PEM_CHARS);

/** Keys are single words: only the keys of the body itself may be written in snake_case. */
const tlsField = z
  .strictObject({
    certificate: pem.optional().meta({
      description: 'What proves the deliveries to the endpoint, then the authorities between',
    }),
    key: pem.optional().meta({
      description:
        'Private key of the first certificate, not encrypted. RSA of 2,048 to 4,096 bits, or better P-256. No response shows it',
    }),
    ca: pem.optional().meta({
      description:
        'The only authorities that may have issued the certificate of the endpoint. Without it, the public ones',
    }),
  })
  .transform((fields, context) => {
    const result = tlsOf(fields, systemClockMs());
    if (result.kind === 'settings') return result.tls;
    for (const { path, message } of result.problems) {
      context.addIssue({ code: 'custom', path: [path], message });
    }
    return z.NEVER;
  })
  .meta({
    id: 'EndpointTls',
    minProperties: 1,
    dependentRequired: { certificate: ['key'], key: ['certificate'] },
    description: 'TLS to the endpoint, in PEM; at most 5 certificates in each',
  })
  .nullable();
