import type { AuditedFields } from '@posthorn/domain/audit/changes.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import { route, type Route } from '../../../http/request/route.ts';
import type { DeleteWebhook } from '../../../webhooks/delete-webhook.ts';

export function deleteWebhookRoute({ deleteWebhook }: { deleteWebhook: DeleteWebhook }): Route {
  return route({
    method: 'delete',
    path: '/webhooks/:webhookId',
    scope: 'webhooks:write',
    portal: 'manage',
    audit: { action: 'webhook.deleted', target: 'webhook' },
    tag: 'Webhooks',
    summary: 'Delete a webhook',
    description: 'Cancels its pending deliveries. Messages and deliveries stay readable.',
    response: { status: 200, message: 'Webhook deleted' },
    errors: ['not_found'],
    async handle({ caller: { companyId }, params: { webhookId = '' } }) {
      const deleted = await deleteWebhook(companyId, webhookId);
      return { changed: { before: fieldsOfStored(deleted), after: {} } };
    },
  });
}

/** Without the sealed fields: a webhook that cannot be decrypted can be deleted too. */
function fieldsOfStored(document: WebhookDocument): AuditedFields {
  const { name, url, appId, projectId, environmentId, eventTypes, disabled } = document;
  const { rateLimitPerSecond } = document;
  return {
    name,
    url,
    appId,
    projectId,
    environmentId,
    eventTypes,
    disabled,
    rateLimitPerSecond,
  };
}
