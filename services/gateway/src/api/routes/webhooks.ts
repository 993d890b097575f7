import type { EgressPolicy } from '@posthorn/domain/egress/egress-rules.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { z } from 'zod';
import { notFound } from '../../http/api-error.ts';
import {
  describeWebhook,
  describeWebhookWithAuth,
  webhookSchema,
  webhookWithAuthSchema,
} from '../../http/responses/webhook.ts';
import { route, type Route } from '../../http/request/route.ts';
import { checkHeaderBytes } from '../../limits/quotas.ts';
import type { ChangeWebhook } from '../../webhooks/change-webhook.ts';
import type { CreateWebhook } from '../../webhooks/create-webhook.ts';
import type { DeleteWebhook } from '../../webhooks/delete-webhook.ts';
import type { ListWebhooks } from '../../webhooks/list-webhooks.ts';
import { idText, limit, skip } from './fields.ts';
import { changesOf, createWebhookBody, updateProblems, updateWebhookBody } from './webhook-body.ts';

export interface WebhookRouteDeps {
  policy: EgressPolicy;
  /** QUOTA_HEADER_BYTES. */
  maxHeaderBytes: number;
  webhooks: Pick<WebhookStore, 'findOne'>;
  createWebhook: CreateWebhook;
  listWebhooks: ListWebhooks;
  changeWebhook: ChangeWebhook;
  deleteWebhook: DeleteWebhook;
}

const tag = 'Webhooks';
const path = '/webhooks/:webhookId';

const listQuery = z.object({
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
    deleteWebhook(deps),
  ];
}

function createWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'post',
    path: '/webhooks',
    tag,
    summary: 'Create a webhook',
    description:
      'A webhook belongs to an app (`appId`), or is global (`projectId` and `environmentId`). `authMethod` decides which credential fields are required.',
    body: createWebhookBody(deps.policy),
    response: { status: 201, message: 'Webhook created', data: webhookWithAuthSchema },
    errors: ['not_found', 'quota_exceeded'],
    async handle({ caller: { companyId }, body: { value } }) {
      checkHeaderBytes(value.customHeaders, deps.maxHeaderBytes);
      return { data: describeWebhookWithAuth(await deps.createWebhook(companyId, value)) };
    },
  });
}

function listWebhooks(deps: WebhookRouteDeps): Route {
  return route({
    method: 'get',
    path: '/webhooks',
    tag,
    summary: 'List the webhooks, oldest first',
    description:
      'A webhook whose stored secrets cannot be decrypted is left out, so a page may hold fewer than `limit`.',
    query: listQuery,
    response: { status: 200, message: 'Webhooks found', data: z.array(webhookSchema) },
    errors: ['not_found'],
    async handle({ caller: { companyId }, query, reserve }) {
      return { pages: described(await deps.listWebhooks(companyId, query), reserve) };
    },
  });
}

/** Two parts, as objects and as text: 50 webhooks of at most 21 kB each. */
const LONG_LIST_BYTES = 4_194_304;

async function* described(
  parts: AsyncIterable<Webhook[]>,
  reserve: (bytes: number) => void,
): AsyncGenerator<z.infer<typeof webhookSchema>[]> {
  let number = 0;
  for await (const part of parts) {
    number += 1;
    if (number === 2) reserve(LONG_LIST_BYTES);
    yield part.map(describeWebhook);
  }
}

function getWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'get',
    path,
    tag,
    summary: 'Get a webhook',
    response: { status: 200, message: 'Webhook found', data: webhookWithAuthSchema },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      const found = await deps.webhooks.findOne(companyId, webhookId);
      if (!found) throw notFound('webhook');
      return { data: describeWebhookWithAuth(found) };
    },
  });
}

function updateWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'put',
    path,
    tag,
    summary: 'Update a webhook',
    description:
      'Fields that are left out keep their values. Credential fields must belong to the current method of authentication, or to the one given in `authMethod`; a new method requires all of its own fields.',
    body: updateWebhookBody(deps.policy),
    isBodyOptional: true,
    response: { status: 200, message: 'Webhook updated', data: webhookSchema },
    errors: ['not_found', 'quota_exceeded'],
    async problemsOf({ caller: { companyId }, params: { webhookId = '' }, fields }) {
      const webhook = await deps.webhooks.findOne(companyId, webhookId);
      return webhook ? updateProblems(fields, webhook, deps.policy) : [];
    },
    async handle({ caller: { companyId }, params: { webhookId = '' }, body: { value } }) {
      checkHeaderBytes(value.customHeaders, deps.maxHeaderBytes);
      const changed = await deps.changeWebhook({ companyId, webhookId }, (webhook) =>
        changesOf(webhook, value),
      );
      return { data: describeWebhook(changed) };
    },
  });
}

function deleteWebhook(deps: WebhookRouteDeps): Route {
  return route({
    method: 'delete',
    path,
    tag,
    summary: 'Delete a webhook',
    description: 'Cancels its pending deliveries. Messages and deliveries stay readable.',
    response: { status: 200, message: 'Webhook deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      await deps.deleteWebhook(companyId, webhookId);
      return {};
    },
  });
}
