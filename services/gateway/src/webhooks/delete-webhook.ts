import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents/documents.ts';
import type { Invalidate } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { foundOr404, notFound } from '../http/api-error.ts';
import type { RemoveTree } from '../removal/remove-tree.ts';

export interface DeleteWebhookDeps {
  db: mongo.Db;
  remove: RemoveTree;
  invalidate: Invalidate;
}

/** Returns the deleted webhook. Throws ApiError 404 for an unknown one. */
export type DeleteWebhook = (companyId: string, webhookId: string) => Promise<WebhookDocument>;

export function createDeleteWebhook({ db, remove, invalidate }: DeleteWebhookDeps): DeleteWebhook {
  return async (companyId, id) => {
    const webhooks = documentsOf(db, 'webhooks', companyId);
    const found = foundOr404(await webhooks.findOne({ _id: id }), 'webhook');
    if (!(await remove({ companyId, kind: 'webhook', id }))) throw notFound('webhook');
    // The next message to its app must not go to this webhook.
    if (found.appId) await invalidate({ companyId, id: found.appId });
    return found;
  };
}
