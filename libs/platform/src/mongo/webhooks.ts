import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { mongo } from 'mongoose';
import { SealedValueError, type Vault } from '../vault.ts';
import { collection } from './collections.ts';
import { documentsOf } from './company-documents.ts';
import type { WebhookDocument } from './documents.ts';
import { openWebhook, sealWebhook } from './webhooks-sealed.ts';

export interface WebhookPage {
  /** Undefined: of every app, and the global ones. */
  appId?: string | undefined;
  skip: number;
  limit: number;
}

/** What may change in a webhook. */
export type WebhookChanges = Partial<
  Omit<Webhook, 'id' | 'companyId' | 'projectId' | 'appId' | 'environmentId' | 'createdAtMs'>
>;

/** A webhook whose stored secrets do not open: nothing may be sent to it. */
export interface UnopenedWebhook {
  id: string;
  disabled: boolean;
  problem: SealedValueError;
}

/** What answers webhooks to one company throws SealedValueError when one of them does not open. */
export interface WebhookStore {
  insert: (webhook: Webhook) => Promise<void>;
  has: (companyId: string, webhookId: string) => Promise<boolean>;
  /** Null without a limit, or without such a webhook. */
  rateLimitOf: (companyId: string, webhookId: string) => Promise<number | null>;
  findOne: (companyId: string, webhookId: string) => Promise<Webhook | null>;
  /** The webhooks of one app, oldest first. */
  findByApp: (companyId: string, appId: string) => Promise<Webhook[]>;
  /** Oldest first. */
  list: (companyId: string, page: WebhookPage) => Promise<Webhook[]>;
  /**
   * Applies the changes when the webhook is still as `seen`; answers it as it is then. Null when
   * somebody else has changed or deleted it meanwhile.
   */
  update: (seen: Webhook, changes: WebhookChanges) => Promise<Webhook | null>;
  /** For the dispatcher, which acts for every company; one that does not open stops no other. */
  findMany: (webhookIds: readonly string[]) => Promise<(Webhook | UnopenedWebhook)[]>;
  /** True when there was one to delete. */
  deleteOne: (companyId: string, webhookId: string) => Promise<boolean>;
}

export function createWebhookStore(db: mongo.Db, vault: Vault): WebhookStore {
  const webhooks = collection(db, 'webhooks');
  const toDocument = (webhook: Webhook) => sealWebhook(vault, webhook);
  const toWebhook = (document: WebhookDocument) => openWebhook(vault, document);
  const own = (companyId: string) => documentsOf(db, 'webhooks', companyId);
  return {
    async insert(webhook) {
      await webhooks.insertOne(toDocument(webhook));
    },
    has: async (companyId, _id) => (await own(companyId).findOne({ _id })) !== null,
    rateLimitOf: async (companyId, _id) =>
      (await own(companyId).findOne({ _id }))?.rateLimitPerSecond ?? null,
    async findOne(companyId, _id) {
      const found = await own(companyId).findOne({ _id });
      return found && toWebhook(found);
    },
    async findByApp(companyId, appId) {
      return (await own(companyId).find({ appId }).sort({ _id: 1 }).toArray()).map(toWebhook);
    },
    async list(companyId, { appId, skip, limit }) {
      const found = own(companyId).find(appId === undefined ? {} : { appId });
      return (await found.sort({ _id: 1 }).skip(skip).limit(limit).toArray()).map(toWebhook);
    },
    async update(seen, changes) {
      const changed = toDocument({ ...seen, ...changes });
      const replaced = await webhooks.replaceOne(
        { _id: seen.id, companyId: seen.companyId, updatedAt: new Date(seen.updatedAtMs) },
        changed,
      );
      return replaced.matchedCount === 1 ? toWebhook(changed) : null;
    },
    async findMany(ids) {
      const found = await webhooks.find({ _id: { $in: [...ids] } }).toArray();
      return found.map((document) => tryToOpen(vault, document));
    },
    async deleteOne(companyId, _id) {
      return (await own(companyId).deleteMany({ _id })) === 1;
    },
  };
}

function tryToOpen(vault: Vault, document: WebhookDocument): Webhook | UnopenedWebhook {
  try {
    return openWebhook(vault, document);
  } catch (problem) {
    if (!(problem instanceof SealedValueError)) throw problem;
    return { id: document._id, disabled: document.disabled, problem };
  }
}
