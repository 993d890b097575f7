import { refusalOfUrl, type EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import { isHeaderValue, refusalOfHeaderName } from '@posthorn/domain/request/header-rules.ts';
import { z } from 'zod';
import { idText, text } from './fields.ts';
import { refusedNamePattern, sameNamePattern } from './webhook-rules.ts';

const MAX_URL_CHARS = 2_048;
const MAX_CUSTOM_HEADERS = 20;
const MAX_EVENT_TYPES = 100;

const PRINTABLE_LATIN_1 = '^[\\x20-\\x7e\\xa0-\\xff]*$';

const headerValue = z
  .string('must be text')
  .refine(isHeaderValue, 'must be at most 4096 printable Latin-1 characters')
  .meta({ maxLength: 4_096, pattern: PRINTABLE_LATIN_1 });

/** `authorization` is refused where it would replace the webhook's own method. */
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
    description: 'An HTTP header name that neither the service nor the connection sets',
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
    description: 'No name twice, whatever its case, and not the header of `authMethod`',
  });

const credential = text(1, 1_024);

/** RFC 7617, 2: a colon would end the user name. */
const basicUser = credential
  .refine((text) => !text.includes(':'), 'must not contain a colon')
  .meta({ pattern: '^[^:]*$' });

/** The name of a kind of event, as a platform chooses it: `order.paid`. */
export const eventType = z
  .string('must be text')
  .regex(/^[A-Za-z0-9._:/-]{1,128}$/, 'must be 1 to 128 letters, digits or . _ : / -')
  .meta({ example: 'order.paid' });

/** Who a webhook belongs to; only at creation. */
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
  hmacSecret: credential.optional(),
};

/** Everything else; the rules of the address follow the policy of this installation. */
export function webhookFields(policy: EgressPolicy) {
  return {
    url: urlField(policy),
    name: text(2, 100).meta({ example: 'Orders' }).optional(),
    customHeaders: customHeaders.optional(),
    eventTypes: z
      .array(eventType, 'must be a list of event types')
      .max(MAX_EVENT_TYPES, 'must have at most 100 entries')
      .optional()
      .meta({ description: 'Empty: all messages to the app' }),
    disabled: z.boolean('must be true or false').optional(),
    rateLimitPerSecond: z
      .int('must be a whole number from 1 to 10000, or null')
      .min(1, 'must be a whole number from 1 to 10000, or null')
      .max(10_000, 'must be a whole number from 1 to 10000, or null')
      .nullable()
      .optional()
      .meta({ description: 'Most attempts a second; null for no limit of its own' }),
  };
}

function urlField(policy: EgressPolicy) {
  const scheme = policy.allowHttp ? '[Hh][Tt][Tt][Pp][Ss]?' : '[Hh][Tt][Tt][Pp][Ss]';
  // Without control characters and backslashes: `URL` would drop or turn them, and store another address.
  const pattern = `^${scheme}://[^\\s/\\\\?#@\\x00-\\x1f\\x7f]+([/?][^#\\\\\\x00-\\x1f\\x7f]*)?$`;
  return text(0, MAX_URL_CHARS)
    .meta({
      pattern,
      example: 'https://example.com/webhooks',
      description:
        'http or https, without user, password and fragment, to a public host; stored percent-encoded',
    })
    .transform((text, context) => {
      const url = URL.parse(text);
      const message = url ? problemOfUrl(url, policy) : 'must be an absolute URL';
      // What only a browser would understand (`https:host`, a space in front) is a mistake here.
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
  // One more for the path that `URL` adds where there is none.
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
