import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import { DEFAULT_HMAC_HEADER, type AuthMethod, type Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import { invalidRequest, type Problem } from '../../http/api-error.ts';
import { isEmptyUpdate } from './fields.ts';
import { AUTH_FIELDS, CREATE_RULES, UPDATE_RULES, type AuthName } from './webhook-rules.ts';
import { authFields, ownerFields, webhookFields } from './webhook-fields.ts';

/** Create-webhook body (spec, Webhooks). */
export function createWebhookBody(policy: EgressPolicy) {
  return z
    .object({ ...webhookFields(policy), ...ownerFields, ...authFields })
    .superRefine(
      (body, context) => {
        const problems = [...ownerProblems(body), ...authProblems(body, null)];
        for (const { path, message } of problems) {
          context.addIssue({ code: 'custom', path: [path], message });
        }
      },
      // Also when a field is wrong by itself: all problems are told at once.
      { when: () => true },
    )
    .superRefine((body, context) => {
      for (const { path, message } of headerProblems(body, null)) {
        context.addIssue({ code: 'custom', path: path.split('.'), message });
      }
    })
    .meta({ id: 'CreateWebhook', ...CREATE_RULES });
}

/** Update-webhook body: what is left out stays as it is. The owner never changes. */
export function updateWebhookBody(policy: EgressPolicy) {
  const { url, ...rest } = webhookFields(policy);
  return z
    .object({ url: url.optional(), ...rest, ...authFields })
    .meta({ id: 'UpdateWebhook', ...UPDATE_RULES });
}

export type CreateWebhookBody = z.infer<ReturnType<typeof createWebhookBody>>;
export type UpdateWebhookBody = z.infer<ReturnType<typeof updateWebhookBody>>;
type AuthBody = Pick<UpdateWebhookBody, keyof typeof authFields | 'customHeaders'>;

/** What is wrong with an update in the light of the webhook; fields that are wrong by themselves are left out. */
export function updateProblems(
  fields: Readonly<Record<string, unknown>>,
  seen: Webhook,
  policy: EgressPolicy,
): Problem[] {
  const { shape } = updateWebhookBody(policy);
  const good = Object.entries(shape).flatMap(([name, schema]) => {
    const { success, data } = schema.safeParse(fields[name]);
    return success && data !== undefined ? [[name, data] as const] : [];
  });
  const body = Object.fromEntries(good) as UpdateWebhookBody;
  return [...authProblems(body, seen), ...headerProblems(body, seen)];
}

/** What an update makes of the webhook as it is; null for an empty one. Throws ApiError 400. */
export function changesOf(seen: Webhook, body: UpdateWebhookBody): WebhookChanges | null {
  const problems = [...authProblems(body, seen), ...headerProblems(body, seen)];
  if (problems.length > 0) throw invalidRequest(problems);
  if (isEmptyUpdate(body)) return null;
  const changes = Object.fromEntries(Object.entries(body).filter(([key]) => !(key in authFields)));
  return { ...changes, authMethod: authMethodOf(body, seen.authMethod, seen.secret) };
}

/** Either an app, or a project with an environment. Sees values of any type. */
function ownerProblems({ appId, projectId, environmentId }: CreateWebhookBody): Problem[] {
  const given = { projectId, environmentId };
  const names = ['projectId', 'environmentId'] as const;
  if (appId !== undefined) {
    const message = 'must not be given together with appId';
    return names.flatMap((path) => (given[path] === undefined ? [] : [{ path, message }]));
  }
  if (projectId === undefined && environmentId === undefined) {
    const message = 'is required, or projectId with environmentId for a global webhook';
    return [{ path: 'appId', message }];
  }
  const message = 'is required for a global webhook';
  return names.flatMap((path) => (given[path] === undefined ? [{ path, message }] : []));
}

/** Sees values of any type; only asks which fields are there. */
function authProblems(body: AuthBody, webhook: Webhook | null): Problem[] {
  const chosen = body.authMethod ?? nameOf(webhook?.authMethod);
  const isNew = nameOf(webhook?.authMethod) !== chosen || !webhook;
  return Object.entries(AUTH_FIELDS).flatMap(([method, fields]) =>
    fields.flatMap((path) => {
      const isGiven = body[path] !== undefined;
      if (isGiven && method !== chosen)
        return [{ path, message: `belongs to authMethod ${method}` }];
      const isMissing = !isGiven && method === chosen && method !== 'hmac' && isNew;
      return isMissing ? [{ path, message: `is required for ${method}` }] : [];
    }),
  );
}

function nameOf(auth: AuthMethod | undefined): AuthName {
  if (auth?.method === 'api_key') return 'apiKey';
  return auth?.method ?? 'hmac';
}

/** No custom header may replace the header of the webhook's own method. */
function headerProblems(body: AuthBody, webhook: Webhook | null): Problem[] {
  const own = ownHeader(authMethodOf(body, webhook?.authMethod, '')).toLowerCase();
  const headers = body.customHeaders ?? webhook?.customHeaders ?? [];
  const problems = headers.flatMap(({ key }, index) => {
    const path = body.customHeaders ? `customHeaders.${index}.key` : 'customHeaders';
    const message = 'is the header of the authentication method';
    return key.toLowerCase() === own ? [{ path, message }] : [];
  });
  if (body.hmacHeader?.toLowerCase() !== 'authorization') return problems;
  return [...problems, { path: 'hmacHeader', message: 'must not be authorization' }];
}

function ownHeader(auth: AuthMethod): string {
  switch (auth.method) {
    case 'basic':
      return 'Authorization';
    case 'api_key':
      return auth.apiKeyHeader;
    case 'hmac':
      return auth.hmacHeader;
  }
}

/**
 * The method that results: what the body leaves out stays as it was, when the method stays the
 * same. `secret` signs unless the client brought a secret of its own.
 */
export function authMethodOf(
  body: AuthBody,
  before: AuthMethod | undefined,
  secret: string,
): AuthMethod {
  switch (body.authMethod ?? nameOf(before)) {
    case 'basic': {
      const old = before?.method === 'basic' ? before : null;
      const username = body.basicAuthUsername ?? old?.username ?? '';
      return { method: 'basic', username, password: body.basicAuthPassword ?? old?.password ?? '' };
    }
    case 'apiKey': {
      const old = before?.method === 'api_key' ? before : null;
      const apiKeyHeader = body.apiKeyHeader ?? old?.apiKeyHeader ?? '';
      return { method: 'api_key', apiKey: body.apiKey ?? old?.apiKey ?? '', apiKeyHeader };
    }
    case 'hmac': {
      const old = before?.method === 'hmac' ? before : null;
      const hmacHeader = body.hmacHeader ?? old?.hmacHeader ?? DEFAULT_HMAC_HEADER;
      return {
        method: 'hmac',
        hmacHeader,
        hmacSecret: body.hmacSecret ?? old?.hmacSecret ?? secret,
      };
    }
  }
}
