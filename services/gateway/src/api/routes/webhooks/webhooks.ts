import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import { fieldsOfWebhook } from '@posthorn/domain/audit/webhook-fields.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import { forOneApp, notFound } from '../../../http/api-error.ts';
import {
  describeWebhook,
  describeWebhookWithAuth,
  webhookSchema,
  webhookWithAuthSchema,
} from '../../../http/responses/webhook.ts';
import { seesSecrets } from '../../../api-keys/sees-secrets.ts';
import { describeParts } from '../../../http/responses/long-list.ts';
import { shownTo } from '../../../api-keys/shown-to.ts';
import { route, type Route } from '../../../http/request/route.ts';
import { checkHeaderBytes } from '../../../limits/quotas.ts';
import type { AuthFields } from '../../../webhooks/auth-method.ts';
import type { ChangeWebhook } from '../../../webhooks/change-webhook.ts';
import type { CompanyKeys } from '../../../webhooks/signing-keys/company-keys.ts';
import type { CreateWebhook } from '../../../webhooks/create-webhook.ts';
import type { DeleteWebhook } from '../../../webhooks/delete-webhook.ts';
import type { ListWebhooks } from '../../../webhooks/lists/list-webhooks.ts';
import { idText, limit, skip } from '../fields.ts';
import { deleteWebhookRoute } from './delete-webhook-route.ts';
import { changesOf, createWebhookBody, updateProblems, updateWebhookBody } from './webhook-body.ts';

export interface WebhookRouteDeps {
  policy: EgressPolicy;
  /** Of the custom headers of one webhook, names and values together. */
  maxHeaderBytes: number;
  webhooks: Pick<WebhookStore, 'findOne'>;
  createWebhook: CreateWebhook;
  listWebhooks: ListWebhooks;
  changeWebhook: ChangeWebhook;
  deleteWebhook: DeleteWebhook;
  companyKeys: Pick<CompanyKeys, 'ensure'>;
}

const tag = 'Webhooks';
const path = '/webhooks/:webhookId';

const secrets = z.enum(['true', 'false'], 'must be true or false').default('true').meta({
  description:
    'With `false`, secrets are shown as `********`, and the audit log records no read of them',
});

const listQuery = z.object({
  secrets,
  appId: idText('app').optional().meta({ description: 'Only the webhooks of this app' }),
  limit: limit(1_000, 1_000),
  skip,
});

/** See docs/contract.md C6. */
export function webhookRoutes(deps: WebhookRouteDeps): Route[] {
  return [
    createWebhook(deps),
    listWebhooks(deps),
    getWebhook(deps),
    updateWebhook(deps),
    deleteWebhookRoute(deps),
  ];
}

function createWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks',
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.created', target: 'webhook' },
    tag,
    summary: 'Create a webhook',
    description:
      'A webhook belongs to an app (`appId`), or is global (`projectId` and `environmentId`). `authMethod` decides which credential fields are required.',
    body: createWebhookBody(deps.policy),
    response: { status: 201, message: 'Webhook created', data: webhookWithAuthSchema },
    errors: ['not_found', 'quota_exceeded'],
    async handle({ caller, body: { value } }) {
      const { companyId, appId } = caller;
      if (appId !== null && value.appId === undefined) throw forOneApp();
      checkHeaderBytes(value.customHeaders, deps.maxHeaderBytes);
      await ensureSigningKey(deps, companyId, value);
      const created = await deps.createWebhook(companyId, value);
      return { data: shownTo(caller, describeWebhookWithAuth)(created) };
    },
  });
}

/** Before the webhook is stored: a dispatcher that finds it must find a key too. */
async function ensureSigningKey(
  { companyKeys }: WebhookRouteDeps,
  companyId: string,
  { signatureAlgorithm }: Pick<AuthFields, 'signatureAlgorithm'>,
): Promise<void> {
  if (signatureAlgorithm === 'ed25519') await companyKeys.ensure(companyId);
}

function listWebhooks(deps: WebhookRouteDeps): Route {
  return route({
    method: 'get',
    path: '/webhooks',
    scope: 'read',
    portal: 'view',
    audit: { action: 'webhook.secrets_read', target: 'webhook', secretsFor: 'webhooks:write' },
    tag,
    summary: 'List the webhooks, oldest first',
    description:
      'A webhook whose stored secrets cannot be decrypted is left out, so a page may hold fewer than `limit`.',
    query: listQuery,
    response: { status: 200, message: 'Webhooks found', data: z.array(webhookSchema) },
    errors: ['not_found'],
    async handle({ caller, query, reserve, takeTurn }) {
      const appId = query.appId ?? caller.appId ?? undefined;
      const { skip, limit } = query;
      const hidesSecrets = query.secrets === 'false';
      const parts = await deps.listWebhooks(caller.companyId, { appId, skip, limit }, takeTurn);
      const describe = shownTo(caller, describeWebhook, !hidesSecrets);
      const shown = { describe, bytes: LONG_LIST_BYTES, reserve };
      return { pages: describeParts(parts, shown), hidesSecrets };
    },
  });
}

/** Twice as many webhooks of at most 21 kB each, as objects and as text. */
const LONG_LIST_BYTES = 4_194_304;

function getWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'get',
    path,
    scope: 'read',
    portal: 'view',
    audit: { action: 'webhook.secrets_read', target: 'webhook', secretsFor: 'webhooks:write' },
    tag,
    summary: 'Get a webhook',
    query: z.object({ secrets }),
    response: { status: 200, message: 'Webhook found', data: webhookWithAuthSchema },
    errors: ['not_found'],
    async handle({ caller, params: { webhookId = '' }, query }) {
      const found = await deps.webhooks.findOne(caller.companyId, webhookId);
      if (!found) throw notFound('webhook');
      const hidesSecrets = query.secrets === 'false';
      const describe = shownTo(caller, describeWebhookWithAuth, !hidesSecrets);
      return { data: describe(found), hidesSecrets };
    },
  });
}

function updateWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'put',
    path,
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.updated', target: 'webhook' },
    tag,
    summary: 'Update a webhook',
    description:
      'Fields that are left out keep their values, and so does a custom header whose value is given as `********`. Credential fields must belong to the current method of authentication, or to the one given in `authMethod`; a new method requires all of its own fields. Who may not see secrets gives them again with a URL of another server.',
    body: updateWebhookBody(deps.policy),
    isBodyOptional: true,
    response: { status: 200, message: 'Webhook updated', data: webhookSchema },
    errors: ['not_found', 'quota_exceeded'],
    async problemsOf({ caller, params: { webhookId = '' }, fields }) {
      const webhook = await deps.webhooks.findOne(caller.companyId, webhookId);
      const asker = { seesSecrets: seesSecrets(caller) };
      return webhook ? updateProblems(fields, webhook, deps.policy, asker) : [];
    },
    async handle({ caller, params: { webhookId = '' }, body: { value } }) {
      const { companyId } = caller;
      await ensureSigningKey(deps, companyId, value);
      const asker = { seesSecrets: seesSecrets(caller) };
      const { before, after } = await deps.changeWebhook({ companyId, webhookId }, (webhook) => {
        const changes = changesOf(webhook, value, asker);
        checkHeaderBytes(changes?.customHeaders, deps.maxHeaderBytes);
        return changes;
      });
      const changed = { before: fieldsOfWebhook(before), after: fieldsOfWebhook(after) };
      return { data: shownTo(caller, describeWebhook)(after), changed };
    },
  });
}
