import { SCOPES } from '@posthorn/domain/access.ts';
import { ROLES } from '@posthorn/domain/people.ts';
import type { ApiKeyDocument } from '@posthorn/platform/mongo/documents.ts';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { z } from 'zod';
import { ApiError, nullIf404 } from '../api-error.ts';
import type { Gateway } from '../gateway.ts';
import { route, type Route } from '../http/route.ts';
import {
  exampleId,
  graceSeconds,
  idField,
  idText,
  isoTime,
  limit,
  name,
  optionalFields,
  skip,
  text,
  timeField,
  timeText,
} from './fields.ts';

const apiKeySchema = z
  .object({
    id: idField('key'),
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key' }),
    scopes: z.array(z.enum(SCOPES)).meta({ description: 'What the key may do' }),
    appId: idField('app').nullable().meta({
      description: 'The only app that the key may be used for; null for the whole company',
    }),
    expiresAt: timeField.nullable().meta({ description: 'Null for never' }),
    lastUsedAt: timeField
      .nullable()
      .meta({ description: 'To the minute; null before the first use' }),
    ofLink: z.boolean().meta({
      description:
        'A sign-in link or a portal link made it, for its session. Nobody knows the key, and it cannot be rotated',
    }),
    createdBy: idField('usr').nullable().meta({
      description:
        'The person who made it in a session of the dashboard, also when they are removed; null for one that an API key, an operator or a link made',
    }),
    createdAt: timeField,
  })
  .meta({ id: 'ApiKey' });

const createdApiKeySchema = z
  .object({
    ...apiKeySchema.shape,
    key: z.string().nullable().meta({
      description:
        'The key itself. Returned here only, and null when a repeat with the same `Idempotency-Key` gets the response again',
      example: 'phk_Y2hvb3NlIHlvdXIgb3duIGtleSB3aXNlbHksIGZyaWVuZHM4RkQ2',
    }),
  })
  .meta({ id: 'CreatedApiKey' });

function describeApiKey(document: Omit<ApiKeyDocument, 'hash'>): z.infer<typeof apiKeySchema> {
  const { _id, name, prefix, scopes = SCOPES, appId, expiresAt, lastUsedAt } = document;
  return {
    id: _id,
    name,
    prefix,
    scopes: [...scopes],
    appId: appId ?? null,
    expiresAt: expiresAt ? isoTime(expiresAt) : null,
    lastUsedAt: lastUsedAt ? isoTime(lastUsedAt) : null,
    ofLink: document.removeAt !== undefined,
    createdBy: document.createdBy ?? null,
    createdAt: isoTime(document.createdAt),
  };
}

const tag = 'API keys';
const path = '/api-keys';
const versionedOnly = true;

const createBody = z
  .object({
    name,
    ...optionalFields({
      scopes: z
        .array(z.enum(SCOPES, `must be one of ${SCOPES.join(', ')}`), 'must be a list of scopes')
        .min(1, 'must have at least one scope')
        .max(SCOPES.length, `must have at most ${SCOPES.length} scopes`)
        .meta({
          description:
            'What the key may do. `read` shows no secrets; `admin` includes all others. All when left out',
        }),
      appId: idText('app').meta({
        description: 'The only app that the key may be used for. The whole company when left out',
      }),
      expiresAt: timeText.meta({
        description: 'When the key stops working. Never when left out',
      }),
    }),
  })
  .meta({ id: 'CreateApiKey' });
const rotateBody = z
  .object({
    graceSeconds: graceSeconds.meta({
      description: 'How long the old key works beside the new one, in seconds',
    }),
  })
  .meta({ id: 'RotateApiKey' });
const listQuery = z.object({
  createdBy: text(1, 128)
    .optional()
    .meta({ description: 'Only the keys that this person made', example: exampleId('usr') }),
  limit: limit(1_000, 1_000),
  skip,
});

/** See docs/contract.md C14. */
export function apiKeyRoutes(gateway: Gateway): Route[] {
  return [
    createKey(gateway),
    listKeys(gateway),
    rotateKey(gateway),
    revokeKey(gateway),
    readMe(gateway),
  ];
}

function createKey({ apiKeys, apps }: Gateway): Route {
  return route({
    operationId: 'createApiKey',
    method: 'post',
    path,
    versionedOnly,
    scope: 'keys:write',
    audit: { action: 'api_key.created', target: 'apiKey' },
    tag,
    summary: 'Create an API key',
    description:
      'The response is the only place that shows the key: Posthorn stores its hash. A key cannot be given a scope that the key of the request does not have.',
    body: createBody,
    response: { status: 201, message: 'API key created', data: createdApiKeySchema },
    errors: ['not_found', 'quota_exceeded'],
    creation: {
      shownOnce: ['key'],
      async find({ caller: { companyId }, newId }) {
        const found = await apiKeys.get(companyId, newId('key')).catch(nullIf404);
        return found && { data: { ...describeApiKey(found), key: null } };
      },
    },
    async handle({ caller, body: { value }, newId }) {
      const { expiresAt, appId, ...asked } = value;
      if (appId !== undefined) await apps.get(caller.companyId, appId);
      const expiresAtMs = expiresAt === undefined ? undefined : Date.parse(expiresAt);
      const id = newId('key');
      const { key, document } = await apiKeys.create(caller, { ...asked, id, appId, expiresAtMs });
      return { data: { ...describeApiKey(document), key } };
    },
  });
}

function listKeys({ apiKeys }: Gateway): Route {
  return route({
    operationId: 'listApiKeys',
    method: 'get',
    path,
    versionedOnly,
    scope: 'read',
    tag,
    summary: 'List the API keys, oldest first',
    query: listQuery,
    response: { status: 200, message: 'API keys found', data: z.array(apiKeySchema) },
    async handle({ caller: { companyId, appId }, query: { createdBy, ...page } }) {
      const found = await apiKeys.list(companyId, { appId, createdBy }, page);
      return { data: found.map(describeApiKey) };
    },
  });
}

function rotateKey({ apiKeys }: Gateway): Route {
  return route({
    operationId: 'rotateApiKey',
    method: 'post',
    path: `${path}/:keyId/rotate`,
    versionedOnly,
    scope: 'keys:write',
    audit: { action: 'api_key.rotated', target: 'apiKey' },
    tag,
    summary: 'Rotate an API key',
    description:
      'Creates a key with the same name and rights. The old key works beside it for `graceSeconds`, then it expires.',
    body: rotateBody,
    isBodyOptional: true,
    response: { status: 201, message: 'API key created', data: createdApiKeySchema },
    errors: ['not_found', 'quota_exceeded', 'key_of_link'],
    creation: { shownOnce: ['key'] },
    async handle({ caller, params: { keyId = '' }, body: { value }, newId }) {
      const { graceSeconds } = value;
      const rotation = { keyId, newKeyId: newId('key'), graceSeconds };
      const { key, document } = await apiKeys.rotate(caller, rotation);
      const changed = { before: {}, after: { newKeyId: document._id, graceSeconds } };
      return { data: { ...describeApiKey(document), key }, changed };
    },
  });
}

function revokeKey({ apiKeys }: Gateway): Route {
  return route({
    operationId: 'revokeApiKey',
    method: 'delete',
    path: `${path}/:keyId`,
    versionedOnly,
    scope: 'keys:write',
    audit: { action: 'api_key.revoked', target: 'apiKey' },
    tag,
    summary: 'Revoke an API key',
    description: 'The key stops working at once at this gateway, and within two seconds at others.',
    response: { status: 200, message: 'API key revoked' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { keyId = '' } }) {
      const { name, scopes, appId, expiresAt } = await apiKeys.revoke(companyId, keyId);
      return { changed: { before: { name, scopes, appId, expiresAt }, after: {} } };
    },
  });
}

const meSchema = z
  .object({
    companyId: idField('comp'),
    companyName: z.string(),
    keyId: idField('key'),
    keyName: z.string(),
    scopes: apiKeySchema.shape.scopes,
    appId: apiKeySchema.shape.appId,
    expiresAt: apiKeySchema.shape.expiresAt,
    person: z
      .object({
        id: idField('usr'),
        name: z.string().nullable().meta({ example: 'Ada' }),
        role: z.enum(ROLES),
      })
      .nullable()
      .meta({
        id: 'SignedInPerson',
        description: 'The person whose session it is; null for an API key',
      }),
    serverVersion: z.string().meta({ description: 'The version of Posthorn', example: '1.0.0' }),
  })
  .meta({ id: 'Me' });

/** See docs/contract.md C4.8. */
function readMe({ apiKeys, companies }: Gateway): Route {
  return route({
    operationId: 'getMe',
    method: 'get',
    path: '/me',
    versionedOnly,
    tag,
    summary: 'Get the API key of the request, and its company',
    description: 'Every API key may use it, whatever its scopes.',
    response: { status: 200, message: 'API key found', data: meSchema },
    async handle({ caller: { companyId, keyId, person = null } }) {
      const companyName = await companies.nameOf(companyId);
      const key = await apiKeys.get(companyId, keyId).catch(nullIf404);
      // It was revoked since it was checked.
      if (!key || companyName === null) throw new ApiError('unauthorized');
      const { name: keyName, scopes, appId, expiresAt } = describeApiKey(key);
      const rights = { scopes, appId, expiresAt };
      return {
        data: { companyId, companyName, keyId, keyName, ...rights, person, serverVersion: VERSION },
      };
    },
  });
}
