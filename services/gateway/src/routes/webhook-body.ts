import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import type { Header, Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import { invalidRequest, type Problem } from '../api-error.ts';
import { isEmptyUpdate } from '../projects/projects.ts';
import { isCredential, MASK } from '../history/sent-headers.ts';
import {
  type AuthFields,
  authHeaderOf,
  authMethodOf,
  type AuthName,
  chosenAlgorithm,
  chosenAuth,
  nameOf,
} from '../webhooks/auth-method.ts';
import {
  AUTH_FIELDS,
  authFields,
  CREATE_RULES,
  ownerFields,
  REQUIRED_FIELDS,
  SECRET_FIELDS,
  UPDATE_RULES,
  webhookFields,
} from './webhook-fields.ts';

/** Create-webhook body (docs/contract.md C6). */
export function createWebhookBody(policy: EgressPolicy) {
  return z
    .object({ ...webhookFields(policy), ...ownerFields, ...authFields(policy) })
    .superRefine(
      (body, context) => {
        const problems = [...ownerProblems(body), ...authProblems(body, null)];
        for (const { path, message } of problems) {
          context.addIssue({ code: 'custom', path: [path], message });
        }
      },
      // Runs even if a field is wrong: one response reports every problem.
      { when: () => true },
    )
    .superRefine((body, context) => {
      for (const { path, message } of headerProblems(body, null)) {
        context.addIssue({ code: 'custom', path: path.split('.'), message });
      }
    })
    .meta({ id: 'CreateWebhook', ...CREATE_RULES });
}

/** Update-webhook body. The owner of a webhook never changes. */
export function updateWebhookBody(policy: EgressPolicy) {
  const { url, ...rest } = webhookFields(policy);
  return z
    .object({ url: url.optional(), ...rest, ...authFields(policy) })
    .meta({ id: 'UpdateWebhook', ...UPDATE_RULES });
}

type CreateWebhookBody = z.infer<ReturnType<typeof createWebhookBody>>;
export type UpdateWebhookBody = z.infer<ReturnType<typeof updateWebhookBody>>;
type AuthBody = Pick<UpdateWebhookBody, keyof ReturnType<typeof authFields> | 'customHeaders'>;

const AUTH_NAMES: ReadonlySet<string> = new Set([
  'authMethod',
  ...Object.values(AUTH_FIELDS).flat(),
]);

/** Who asks for an update. */
interface Asker {
  seesSecrets: boolean;
}

/**
 * Returns the problems that an update has with the stored webhook. Fields that are wrong by themselves are reported as
 * that: here they are neither read nor missing.
 */
export function updateProblems(
  fields: Readonly<Record<string, unknown>>,
  webhook: Webhook,
  policy: EgressPolicy,
  asker: Asker,
): Problem[] {
  const { shape } = updateWebhookBody(policy);
  const wrong = new Set<string>();
  const valid = Object.entries(shape).flatMap(([name, schema]) => {
    const { success, data } = schema.safeParse(fields[name]);
    if (!success) wrong.add(name);
    return success && data !== undefined ? [[name, data] as const] : [];
  });
  const problems = problemsWith(webhook, Object.fromEntries(valid), asker);
  return problems.filter(({ path }) => !wrong.has(path));
}

function problemsWith(
  webhook: Webhook,
  body: UpdateWebhookBody,
  { seesSecrets }: Asker,
): Problem[] {
  return [
    ...authProblems(body, webhook),
    ...headerProblems(body, webhook),
    ...maskProblems(body, webhook),
    ...(seesSecrets ? [] : movedSecretProblems(body, webhook)),
  ];
}

/**
 * Returns what an update changes in the stored webhook; null when it has no fields. Throws ApiError 400
 * when it does not fit the webhook.
 */
export function changesOf(
  webhook: Webhook,
  body: UpdateWebhookBody,
  asker: Asker,
): WebhookChanges | null {
  const problems = problemsWith(webhook, body, asker);
  if (problems.length > 0) throw invalidRequest(problems);
  if (isEmptyUpdate(body)) return null;
  const { customHeaders } = body;
  const changes = Object.fromEntries(Object.entries(body).filter(([key]) => !AUTH_NAMES.has(key)));
  return {
    ...changes,
    ...(customHeaders && { customHeaders: withKeptValues(customHeaders, webhook) }),
    authMethod: authMethodOf(body, webhook.authMethod, webhook.secret),
  };
}

/** A webhook has an app, or a project with an environment. Only asks which fields are given: they may be of any type. */
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

/** Only asks which fields are given: they may be of any type. */
function authProblems(body: AuthBody, webhook: Webhook | null): Problem[] {
  const chosen = chosenAuth(body, webhook?.authMethod);
  const isNew = nameOf(webhook?.authMethod) !== chosen;
  const required = REQUIRED_FIELDS[chosen];
  const problems = Object.entries(AUTH_FIELDS).flatMap(([method, fields]) =>
    fields.flatMap((path) => {
      const isGiven = body[path] !== undefined;
      if (isGiven && method !== chosen)
        return [{ path, message: `belongs to authMethod ${method}` }];
      const isMissing = !isGiven && isNew && method === chosen && required.includes(path);
      return isMissing ? [{ path, message: `is required for ${method}` }] : [];
    }),
  );
  return chosen === 'hmac' ? [...problems, ...algorithmProblems(body, webhook)] : problems;
}

/** Header and secret of the HMAC have no meaning for Ed25519. */
function algorithmProblems(body: AuthBody, webhook: Webhook | null): Problem[] {
  if (chosenAlgorithm(body, webhook?.authMethod) !== 'ed25519') return [];
  return SECRET_FIELDS.flatMap((path) =>
    body[path] === undefined
      ? []
      : [{ path, message: 'belongs to signatureAlgorithm hmac-sha256' }],
  );
}

/** A custom header must not replace the header that the method of authentication sets. */
function headerProblems(body: AuthBody, webhook: Webhook | null): Problem[] {
  const authHeader = authHeaderOf(body, webhook?.authMethod)?.toLowerCase();
  const headers = body.customHeaders ?? webhook?.customHeaders ?? [];
  const problems = headers.flatMap(({ key }, index) => {
    const path = body.customHeaders ? `customHeaders.${index}.key` : 'customHeaders';
    const message = 'is the header of the authentication method';
    return key.toLowerCase() === authHeader ? [{ path, message }] : [];
  });
  if (body.hmacHeader?.toLowerCase() !== 'authorization') return problems;
  return [...problems, { path: 'hmacHeader', message: 'must not be authorization' }];
}

/** What of an update says where the secrets of a webhook go. */
interface MovingFields extends AuthFields {
  url?: string | undefined;
  customHeaders?: Header[] | undefined;
}

/** The secret that each method sends to another server. That of `hmac` signs, and is never sent. */
const SENT_SECRETS = {
  basic: 'basicAuthPassword',
  apiKey: 'apiKey',
  oauth2: 'oauth2ClientSecret',
  hmac: null,
} as const satisfies Record<AuthName, keyof AuthFields | null>;

/** `********` stands for the value that the header of this name has (docs/contract.md C6.10). */
function withKeptValues(headers: readonly Header[], { customHeaders }: Webhook): Header[] {
  return headers.map(({ key, value }) => ({
    key,
    value: value === MASK ? (valueOf(customHeaders, key) ?? value) : value,
  }));
}

/** A mask in place of a value that the webhook does not have would be sent as the value. */
function maskProblems({ customHeaders = [] }: MovingFields, webhook: Webhook): Problem[] {
  return customHeaders.flatMap(({ key, value }, index) =>
    value === MASK && valueOf(webhook.customHeaders, key) === undefined
      ? [
          {
            path: `customHeaders.${index}.value`,
            message: 'is a mask, and no value of this header is stored',
          },
        ]
      : [],
  );
}

function valueOf(headers: readonly Header[], name: string): string | undefined {
  return headers.find(({ key }) => key.toLowerCase() === name.toLowerCase())?.value;
}

const MESSAGE =
  'must be given again: this update would send it to another server, and the caller may not see it';

/**
 * Returns the problems of an update by a caller who sees no secrets: with a URL of their own server they would read
 * every secret that the webhook keeps (docs/contract.md C20.6).
 */
function movedSecretProblems(body: MovingFields, webhook: Webhook): Problem[] {
  const { url, oauth2TokenUrl } = body;
  const { authMethod } = webhook;
  const tokenUrl = authMethod.method === 'oauth2' ? authMethod.tokenUrl : undefined;
  const isMoved = isOtherServer(url, webhook.url);
  if (!isMoved && !isOtherServer(oauth2TokenUrl, tokenUrl)) return [];
  return [...credentialProblems(body, webhook), ...(isMoved ? movedHeaders(body, webhook) : [])];
}

/** Also another port, and http in place of https. */
function isOtherServer(after: string | undefined, before: string | undefined): boolean {
  if (after === undefined || before === undefined) return false;
  return new URL(after).origin !== new URL(before).origin;
}

/** Another method requires all of its own fields in any case. */
function credentialProblems(body: MovingFields, { authMethod }: Webhook): Problem[] {
  const chosen = chosenAuth(body, authMethod);
  const path = SENT_SECRETS[chosen];
  const isKept = chosen === nameOf(authMethod) && path !== null && body[path] === undefined;
  return isKept ? [{ path, message: MESSAGE }] : [];
}

function movedHeaders({ customHeaders }: MovingFields, webhook: Webhook): Problem[] {
  if (!customHeaders) {
    const hasSecret = webhook.customHeaders.some(({ key }) => isCredential(key));
    return hasSecret ? [{ path: 'customHeaders', message: MESSAGE }] : [];
  }
  return customHeaders.flatMap(({ key, value }, index) =>
    value === MASK && isCredential(key)
      ? [{ path: `customHeaders.${index}.value`, message: MESSAGE }]
      : [],
  );
}
