import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { mongo } from 'mongoose';
import { collection } from './collections.ts';
import type { WebhookDocument } from './documents.ts';

export interface WebhookStore {
  insert: (webhook: WebhookDocument) => Promise<void>;
  findOne: (companyId: string, webhookId: string) => Promise<WebhookDocument | null>;
  /** The webhooks of one app, oldest first. */
  findByApp: (companyId: string, appId: string) => Promise<WebhookDocument[]>;
  /** For the dispatcher, which acts for every company. */
  findMany: (webhookIds: readonly string[]) => Promise<Webhook[]>;
  /** True when there was one to delete. */
  deleteOne: (companyId: string, webhookId: string) => Promise<boolean>;
}

export function createWebhookStore(db: mongo.Db): WebhookStore {
  const webhooks = collection(db, 'webhooks');
  return {
    async insert(webhook) {
      await webhooks.insertOne(webhook);
    },
    findOne: (companyId, _id) => webhooks.findOne({ _id, companyId }),
    findByApp: (companyId, appId) => webhooks.find({ appId, companyId }).sort({ _id: 1 }).toArray(),
    async findMany(ids) {
      return (await webhooks.find({ _id: { $in: [...ids] } }).toArray()).map(toWebhook);
    },
    async deleteOne(companyId, _id) {
      return (await webhooks.deleteOne({ _id, companyId })).deletedCount === 1;
    },
  };
}

export function toWebhook(document: WebhookDocument): Webhook {
  const { _id, companyId, appId, url, secret, customHeaders, authMethod, disabled } = document;
  return { id: _id, companyId, appId, url, secret, customHeaders, authMethod, disabled };
}
