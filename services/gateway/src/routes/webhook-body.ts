import {
  AUTH_NAMES,
  type AuthFields,
  authHeaderOf,
  authMethodOf,
  type AuthName,
  authShape,
  type ChangedAuthFields,
  chosenAlgorithm,
  chosenAuth,
  DEFAULT_HMAC_HEADER,
  fieldNamesOf,
  nameOf,
  requiredFieldsOf,
  SECRET_FIELDS,
  sentSecretOf,
  setsAuthorization,
  withAuthDefaults,
} from '@posthorn/domain/auth-methods.ts';
import type { EgressPolicy } from '@posthorn/domain/egress.ts';
import {
  isCredentialHeader,
  MASK,
  optionalFields,
  removableFields,
  sameNamePattern,
} from '@posthorn/domain/field-types.ts';
import {
  changedValues,
  createShape,
  type RequestRules,
  updateShape,
} from '@posthorn/domain/webhook-fields.ts';
import type { Header, Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookChanges } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { systemClockMs } from '@posthorn/platform/service/clock-and-ids.ts';
import { messageOf } from '@posthorn/platform/service/errors.ts';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { invalidRequest, type Problem } from '../api-error.ts';
import { isEmptyUpdate } from '../projects/projects.ts';

/** In JSON Schema: left out, or null, which means the same in rules between fields. */
const NOT_GIVEN = { type: 'null' };
const GIVEN = { not: NOT_GIVEN };

const WITHOUT_SECRET_FIELDS = {
  if: {
    required: ['signatureAlgorithm'],
    properties: { signatureAlgorithm: { const: 'ed25519' } },
  },
  then: none(SECRET_FIELDS),
};

/** All but the default. */
const NAMED_METHODS = AUTH_NAMES.slice(1);
const IS_NAMED = { anyOf: NAMED_METHODS.map(has) };
const IS_AUTHORIZATION = { anyOf: AUTH_NAMES.filter(setsAuthorization).map(has) };

/**
 * The rules between the fields of a new webhook, as far as JSON Schema can express them. Written with `if`, which generators
 * of clients skip: of a `oneOf` they make classes that have only the fields that it names.
 */
const CREATE_RULES = {
  allOf: [
    {
      if: all(['appId']),
      then: none(['projectId', 'environmentId']),
      else: all(['projectId', 'environmentId']),
    },
    ...NAMED_METHODS.map((method) => ({
      if: has(method),
      then: all(requiredFieldsOf(method)),
      else: none(fieldNamesOf(method)),
    })),
    { if: IS_NAMED, then: none(fieldNamesOf('hmac')) },
    { if: IS_AUTHORIZATION, then: withoutCustomHeader('authorization') },
    {
      if: { not: { anyOf: [IS_NAMED, all(['hmacHeader'])] } },
      then: withoutCustomHeader(DEFAULT_HMAC_HEADER),
    },
    WITHOUT_SECRET_FIELDS,
  ],
};

/** The rules between the fields of an update that hold for every webhook; the others depend on the stored one. */
const UPDATE_RULES = {
  allOf: [
    ...AUTH_NAMES.map((method) => ({
      if: { anyOf: [has(method), ...fieldNamesOf(method).map((field) => all([field]))] },
      then: onlyWith(method),
    })),
    { if: IS_AUTHORIZATION, then: withoutCustomHeader('authorization') },
    WITHOUT_SECRET_FIELDS,
  ],
};

function has(method: AuthName): object {
  return { required: ['authMethod'], properties: { authMethod: { const: method } } };
}

/** All of the fields are given. */
function all(fields: readonly string[]): { required: readonly string[]; properties: object } {
  return { required: fields, properties: Object.fromEntries(fields.map((name) => [name, GIVEN])) };
}

/** None of the fields is given. */
function none(fields: readonly string[]): { properties: object } {
  return { properties: Object.fromEntries(fields.map((name) => [name, NOT_GIVEN])) };
}

/** The fields of an update that has a field of this method. Null takes none away that the method requires. */
function onlyWith(method: AuthName): object {
  const others = AUTH_NAMES.filter((other) => other !== method).flatMap(fieldNamesOf);
  const names = method === AUTH_NAMES[0] ? [method, null] : [method];
  const kept = requiredFieldsOf(method).map((field) => [field, GIVEN] as const);
  const headers = setsAuthorization(method) ? withoutCustomHeader('authorization').properties : {};
  const properties = {
    authMethod: { enum: names },
    ...none(others).properties,
    ...Object.fromEntries(kept),
    ...headers,
  };
  return { properties };
}

function withoutCustomHeader(name: string): { properties: { customHeaders: object } } {
  const key = { not: { pattern: sameNamePattern(name) } };
  return { properties: { customHeaders: { items: { properties: { key } } } } };
}

/** Create-webhook body (docs/contract.md C6). */
export function createWebhookBody(policy: EgressPolicy) {
  return z
    .object({ ...createShape(rulesOf(policy)), ...optionalFields(authShape(policy)) })
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
      for (const { path, message } of [...headerProblems(body, null)]) {
        context.addIssue({ code: 'custom', path: path.split('.'), message });
      }
    })
    .meta({ id: 'CreateWebhook', ...CREATE_RULES });
}

/** Update-webhook body. The owner of a webhook never changes. */
export function updateWebhookBody(policy: EgressPolicy) {
  return z
    .object({ ...updateShape(rulesOf(policy)), ...removableFields(authShape(policy)) })
    .meta({ id: 'UpdateWebhook', ...UPDATE_RULES });
}

function rulesOf(policy: EgressPolicy): RequestRules {
  return { policy, nowMs: systemClockMs, refusalOfOpenSsl };
}

/** Mistakes are found when a webhook is saved, and not by its deliveries. */
const refusalOfOpenSsl: RequestRules['refusalOfOpenSsl'] = (options) => {
  try {
    createSecureContext(options);
    return null;
  } catch (error) {
    return messageOf(error);
  }
};

type CreateWebhookBody = z.infer<ReturnType<typeof createWebhookBody>>;
export type UpdateWebhookBody = z.infer<ReturnType<typeof updateWebhookBody>>;
interface AuthBody extends AuthFields {
  customHeaders?: Header[] | undefined;
  signatureHeaders?: Webhook['signatureHeaders'] | undefined;
}

const AUTH_FIELDS: ReadonlySet<string> = new Set([
  'authMethod',
  ...AUTH_NAMES.flatMap(fieldNamesOf),
]);

/** The caller of an update. */
interface Asker {
  seesSecrets: boolean;
}

/**
 * Returns the problems of an update with the stored webhook. Invalid fields are reported elsewhere; this check
 * ignores them.
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
    if (fields[name] === undefined) return [];
    const { success, data } = schema.safeParse(fields[name]);
    if (!success) wrong.add(name);
    return success ? [[name, data] as const] : [];
  });
  const problems = problemsWith(webhook, Object.fromEntries(valid), asker);
  return problems.filter(({ path }) => !wrong.has(path));
}

function problemsWith(
  webhook: Webhook,
  body: UpdateWebhookBody,
  { seesSecrets }: Asker,
): Problem[] {
  const given = valuesOf(webhook, body);
  return [
    ...requiredProblems(body, webhook),
    ...authProblems(given, webhook),
    ...headerProblems(given, webhook),
    ...maskProblems(given, webhook),
    ...(seesSecrets ? [] : movedSecretProblems(given, webhook)),
  ];
}

/** The values that an update sets: null takes a field away, back to its default (docs/contract.md C1.13). */
function valuesOf(webhook: Webhook, body: UpdateWebhookBody) {
  const auth = Object.entries(body).filter(([name]) => AUTH_FIELDS.has(name));
  const given: ChangedAuthFields = Object.fromEntries(auth);
  return {
    ...changedValues(body, webhook),
    ...withAuthDefaults(given, webhook.authMethod, webhook.secret),
  };
}

/** A method that the update changes to requires its fields in any case. */
function requiredProblems(body: UpdateWebhookBody, { authMethod }: Webhook): Problem[] {
  const chosen = chosenAuth(body, authMethod);
  if (chosen !== nameOf(authMethod)) return [];
  const taken = requiredFieldsOf(chosen).filter((path) => body[path] === null);
  return taken.map((path) => ({ path, message: `is required for ${chosen}` }));
}

/**
 * Returns the changes of an update; null without fields. Throws ApiError 400 when it does not fit the stored webhook.
 */
export function changesOf(
  webhook: Webhook,
  body: UpdateWebhookBody,
  asker: Asker,
): WebhookChanges | null {
  const problems = problemsWith(webhook, body, asker);
  if (problems.length > 0) throw invalidRequest(problems);
  if (isEmptyUpdate(body)) return null;
  const given = valuesOf(webhook, body);
  const { customHeaders } = given;
  const changes = Object.fromEntries(
    Object.entries(given).filter(([key]) => !AUTH_FIELDS.has(key)),
  );
  return {
    ...changes,
    ...(given.disabled === false && { disabledReason: null }),
    ...(customHeaders && { customHeaders: withKeptValues(customHeaders, webhook) }),
    authMethod: authMethodOf(given, webhook.authMethod, webhook.secret),
  };
}

/**
 * A webhook has an app, or a project with an environment. Checks only which fields are given: they may be of any
 * type.
 */
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

/** Checks only which fields are given: they may be of any type. */
function authProblems(body: AuthBody, webhook: Webhook | null): Problem[] {
  const chosen = chosenAuth(body, webhook?.authMethod);
  const isNew = nameOf(webhook?.authMethod) !== chosen;
  const problems = AUTH_NAMES.flatMap((method) =>
    fieldNamesOf(method).flatMap((path) => {
      const isRequired = requiredFieldsOf(method).includes(path);
      const isGiven = body[path] !== undefined;
      if (isGiven && method !== chosen)
        return [{ path, message: `belongs to authMethod ${method}` }];
      const isMissing = !isGiven && isNew && method === chosen && isRequired;
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

/** The fields of an update that decide where the secrets of a webhook are sent. */
interface MovingFields extends AuthBody {
  url?: string | undefined;
}

/** `********` keeps the value of the header with this name (docs/contract.md C6.10). */
function withKeptValues(headers: readonly Header[], { customHeaders }: Webhook): Header[] {
  return headers.map(({ key, value }) => ({
    key,
    value: value === MASK ? (valueOf(customHeaders, key) ?? value) : value,
  }));
}

/** Without a stored value, deliveries would send the mask itself. */
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
 * Returns the problems of an update by a caller who may not see secrets: with the URL of their own server they would
 * read all secrets that the webhook keeps (docs/contract.md C20.6).
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

/** A change of the method requires all fields of the new one in any case. */
function credentialProblems(body: MovingFields, { authMethod }: Webhook): Problem[] {
  const chosen = chosenAuth(body, authMethod);
  const path = sentSecretOf(chosen);
  if (path === undefined || chosen !== nameOf(authMethod)) return [];
  return body[path] === undefined ? [{ path, message: MESSAGE }] : [];
}

function movedHeaders({ customHeaders }: MovingFields, webhook: Webhook): Problem[] {
  if (!customHeaders) {
    const hasSecret = webhook.customHeaders.some(({ key }) => isCredentialHeader(key));
    return hasSecret ? [{ path: 'customHeaders', message: MESSAGE }] : [];
  }
  return customHeaders.flatMap(({ key, value }, index) =>
    value === MASK && isCredentialHeader(key)
      ? [{ path: `customHeaders.${index}.value`, message: MESSAGE }]
      : [],
  );
}
