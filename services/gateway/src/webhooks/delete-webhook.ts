import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { Invalidation } from '@posthorn/platform/redis/invalidations.ts';
import type { mongo } from 'mongoose';
import { notFound } from '../http/api-error.ts';
import type { RemoveTree } from '../removal/remove-tree.ts';

export interface DeleteWebhookDeps {
  db: mongo.Db;
  remove: RemoveTree;
  /** Drops a webhook or app from the caches of every gateway, of this one first. */
  invalidate: (invalidation: Invalidation) => Promise<void>;
}

/** Throws ApiError 404 for an unknown webhook. */
export type DeleteWebhook = (companyId: string, webhookId: string) => Promise<void>;

export function createDeleteWebhook({ db, remove, invalidate }: DeleteWebhookDeps): DeleteWebhook {
  return async (companyId, id) => {
    const found = await documentsOf(db, 'webhooks', companyId).findOne({ _id: id });
    if (!(await remove({ companyId, kind: 'webhook', id }))) throw notFound('webhook');
    // The next message to its app must not go to this webhook.
    if (found?.appId) await invalidate({ companyId, id: found.appId });
  };
}
