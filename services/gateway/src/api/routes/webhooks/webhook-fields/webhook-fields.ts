import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import {
  CREDENTIAL_PATTERN,
  HEADER_VALUE_PATTERN,
  isCredential,
  isHeaderValue,
  MAX_HEADER_VALUE_CHARS,
  refusalOfHeaderName,
} from '@posthorn/domain/request/header-rules.ts';
import { CLIENT_AUTHENTICATIONS, SIGNATURE_ALGORITHMS } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { idText, text } from '../../fields.ts';
import { urlField } from './url-field.ts';
import { refusedNamePattern, sameNamePattern } from './webhook-json-schema.ts';
import { tlsField } from './webhook-tls.ts';

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
