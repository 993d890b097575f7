import { refusalOfUrl, type EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import { isHeaderValue, refusalOfHeaderName } from '@posthorn/domain/request/header-rules.ts';
import { SIGNATURE_ALGORITHMS } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { idText, text } from './fields.ts';
import { refusedNamePattern, sameNamePattern } from './webhook-json-schema.ts';

const MAX_URL_CHARS = 2_048;
const MAX_CUSTOM_HEADERS = 20;
const MAX_EVENT_TYPES = 100;

const PRINTABLE_LATIN_1 = '^[\\x20-\\x7e\\xa0-\\xff]*$';

const headerValue = z
  .string('must be text')
  .refine(isHeaderValue, 'must be at most 4096 printable Latin-1 characters')
  .meta({ maxLength: 4_096, pattern: PRINTABLE_LATIN_1 });

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

const credential = text(1, 1_024);

/** A colon would end the user name (RFC 7617, section 2). */
const basicUser = credential
  .refine((text) => !text.includes(':'), 'must not contain a colon')
  .meta({ pattern: '^[^:]*$' });

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

export const authFields = {
  authMethod: z.enum(['hmac', 'basic', 'apiKey'], 'must be hmac, basic or apiKey').optional(),
  basicAuthUsername: basicUser.optional(),
  basicAuthPassword: credential.optional(),
  apiKey: credential
    .refine(isHeaderValue, 'must be printable Latin-1')
    .meta({ pattern: PRINTABLE_LATIN_1 })
    .optional(),
  apiKeyHeader: headerName.optional(),
  hmacHeader: headerName.meta({ not: { pattern: sameNamePattern('authorization') } }).optional(),
  hmacSecret: credential
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

function urlField(policy: EgressPolicy) {
  const scheme = policy.allowHttp ? '[Hh][Tt][Tt][Pp][Ss]?' : '[Hh][Tt][Tt][Pp][Ss]';
  // No control characters and no backslashes: `URL` drops or replaces them, and another URL would be stored.
  const pattern = `^${scheme}://[^\\s/\\\\?#@\\x00-\\x1f\\x7f]+([/?][^#\\\\\\x00-\\x1f\\x7f]*)?$`;
  return text(0, MAX_URL_CHARS)
    .meta({
      pattern,
      example: 'https://example.com/webhooks',
      description:
        'An http or https URL of a public host, without user, password and fragment. Stored percent-encoded',
    })
    .transform((text, context) => {
      const url = URL.parse(text);
      const message = url ? problemOfUrl(url, policy) : 'must be an absolute URL';
      // `URL` also accepts what only a browser understands, such as `https:host` or leading spaces.
      const isPlain = new RegExp(pattern).test(text);
      if (!message && !isPlain)
        context.addIssue({ code: 'custom', message: 'must be http(s)://…' });
      if (message) context.addIssue({ code: 'custom', message });
      return url?.href ?? z.NEVER;
    });
}

function problemOfUrl(url: URL, policy: EgressPolicy): string | null {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https';
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password';
  if (url.href.includes('#')) return 'must not contain a fragment';
  // One more character for the path `/` that `URL` adds.
  if (url.href.length > MAX_URL_CHARS + 1) return 'must have at most 2048 characters once encoded';
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
