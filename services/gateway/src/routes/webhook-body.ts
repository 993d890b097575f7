import { refusalOfUrl, type EgressPolicy } from '@posthorn/domain/egress.ts';
import { isHeaderValue, refusalOfHeaderName } from '@posthorn/domain/header-rules.ts';
import { DEFAULT_HMAC_HEADER, type AuthMethod } from '@posthorn/domain/webhook.ts';
import { z } from 'zod';
import { idText } from './fields.ts';

const MAX_URL_CHARS = 2_048;
const MAX_CUSTOM_HEADERS = 20;

const headerValue = z
  .string('must be text')
  .refine(isHeaderValue, 'must be at most 4096 printable Latin-1 characters');

/** `authorization` is refused where it would replace the webhook's own method. */
const headerName = z.string('must be text').superRefine((name, context) => {
  const refusal = refusalOfHeaderName(name);
  if (refusal) context.addIssue({ code: 'custom', message: refusal });
});

const customHeaders = z
  .array(z.strictObject({ key: headerName, value: headerValue }), 'must be a list of {key, value}')
  .max(MAX_CUSTOM_HEADERS, 'must have at most 20 entries');

const credential = z
  .string('must be text')
  .min(1, 'must not be empty')
  .max(1_024, 'must have at most 1024 characters');

const basicUser = credential.refine((text) => !text.includes(':'), 'must not contain a colon');

const AUTH_FIELDS = {
  basic: ['basicAuthUsername', 'basicAuthPassword'],
  apiKey: ['apiKey', 'apiKeyHeader'],
  hmac: ['hmacHeader', 'hmacSecret'],
} as const;

/** Create-webhook body (spec, Webhooks). The address rules follow the policy of this installation. */
export function webhookBody(policy: EgressPolicy) {
  return z
    .object({
      url: urlField(policy),
      name: z
        .string('must be text')
        .min(2, 'must have 2 to 100 characters')
        .max(100, 'must have 2 to 100 characters')
        .optional(),
      appId: idText.optional(),
      projectId: idText.optional(),
      environmentId: z
        .string('must be text')
        .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -')
        .optional(),
      customHeaders: customHeaders.default([]),
      authMethod: z
        .enum(['hmac', 'basic', 'apiKey'], 'must be hmac, basic or apiKey')
        .default('hmac'),
      basicAuthUsername: basicUser.optional(),
      basicAuthPassword: credential.optional(),
      apiKey: credential.refine(isHeaderValue, 'must be printable Latin-1').optional(),
      apiKeyHeader: headerName.optional(),
      hmacHeader: headerName.optional(),
      hmacSecret: credential.optional(),
    })
    .superRefine(
      (body, context) => {
        checkOwner(body, reportTo(context));
        checkAuthFields(body, reportTo(context));
      },
      // Also when a field is wrong by itself: all problems are told at once.
      { when: () => true },
    )
    .superRefine((body, context) => {
      checkHeaderNames(body, reportTo(context));
    });
}

function reportTo(context: z.core.$RefinementCtx): Report {
  return (path, message) => {
    context.addIssue({ code: 'custom', path: [path], message });
  };
}

export type WebhookBody = z.infer<ReturnType<typeof webhookBody>>;

type Report = (path: string, message: string) => void;

/** Either an app, or a project with an environment. */
function checkOwner(
  body: Pick<WebhookBody, 'appId' | 'projectId' | 'environmentId'>,
  issue: Report,
) {
  const { appId, projectId, environmentId } = body;
  if (appId !== undefined) {
    if (projectId !== undefined) issue('projectId', 'must not be given together with appId');
    if (environmentId !== undefined)
      issue('environmentId', 'must not be given together with appId');
  } else if (projectId === undefined && environmentId === undefined) {
    issue('appId', 'is required, or projectId with environmentId for a global webhook');
  } else {
    if (projectId === undefined) issue('projectId', 'is required for a global webhook');
    if (environmentId === undefined) issue('environmentId', 'is required for a global webhook');
  }
}

/** Sees values of any type; only asks which fields are there. */
function checkAuthFields(body: WebhookBody, issue: Report): void {
  for (const [method, fields] of Object.entries(AUTH_FIELDS)) {
    for (const field of fields) {
      const isGiven = body[field] !== undefined;
      const isChosen = method === body.authMethod;
      if (isGiven && !isChosen) issue(field, `belongs to authMethod ${method}`);
      if (!isGiven && isChosen && method !== 'hmac') issue(field, `is required for ${method}`);
    }
  }
}

function checkHeaderNames(body: WebhookBody, issue: Report): void {
  const own = ownHeader(body)?.toLowerCase();
  body.customHeaders.forEach(({ key }, index) => {
    if (key.toLowerCase() !== own) return;
    issue(`customHeaders.${index}.key`, 'is the header of the authentication method');
  });
  if (body.hmacHeader?.toLowerCase() === 'authorization') {
    issue('hmacHeader', 'must not be authorization');
  }
}

function ownHeader(body: WebhookBody): string | undefined {
  if (body.authMethod === 'basic') return 'authorization';
  if (body.authMethod === 'apiKey') return body.apiKeyHeader;
  return body.hmacHeader ?? DEFAULT_HMAC_HEADER;
}

/** The stored method; `secret` signs unless the client brought a secret of its own. */
export function authMethodOf(body: WebhookBody, secret: string): AuthMethod {
  const { basicAuthUsername: username = '', basicAuthPassword: password = '' } = body;
  const { apiKey = '', apiKeyHeader = '' } = body;
  switch (body.authMethod) {
    case 'basic':
      return { method: 'basic', username, password };
    case 'apiKey':
      return { method: 'api_key', apiKey, apiKeyHeader };
    case 'hmac':
      return {
        method: 'hmac',
        hmacHeader: body.hmacHeader ?? DEFAULT_HMAC_HEADER,
        hmacSecret: body.hmacSecret ?? secret,
      };
  }
}

function urlField(policy: EgressPolicy) {
  return z
    .string('must be text')
    .max(MAX_URL_CHARS, 'must have at most 2048 characters')
    .transform((text, context) => {
      const url = URL.parse(text);
      const message = url ? problemOfUrl(url, policy) : 'must be an absolute URL';
      if (message) context.addIssue({ code: 'custom', message });
      return url?.href ?? z.NEVER;
    });
}

function problemOfUrl(url: URL, policy: EgressPolicy): string | null {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must be http or https';
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password';
  if (url.hash !== '') return 'must not contain a fragment';
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
