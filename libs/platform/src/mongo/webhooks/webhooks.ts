import type { Webhook } from '@posthorn/domain/webhook.ts';
import type { mongo } from 'mongoose';
import { SealedValueError, type Vault } from '../../vault/vault.ts';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { WebhookDocument } from '../documents.ts';
import { openWebhook, sealWebhook } from './webhooks-sealed.ts';

export interface WebhookPage {
  /** Undefined for the webhooks of every app, and the global ones. */
  appId?: string | undefined;
  skip: number;
  limit: number;
}

/** What may change in a webhook. */
export type WebhookChanges = Partial<
  Omit<Webhook, 'id' | 'companyId' | 'projectId' | 'appId' | 'environmentId' | 'createdAtMs'>
>;

/** A webhook whose sealed values cannot be opened. Nothing may be sent to it. */
export interface UnopenedWebhook extends Pick<Webhook, 'id' | 'disabled' | 'eventTypes'> {
  problem: SealedValueError;
}

/** A result of a query for several webhooks: one that cannot be opened must not affect the others. */
export type FoundWebhook = Webhook | UnopenedWebhook;

export interface WebhookStore {
  insert: (webhook: Webhook) => Promise<void>;
  has: (companyId: string, webhookId: string) => Promise<boolean>;
  /** Null without a limit, or when there is no such webhook. */
  rateLimitOf: (companyId: string, webhookId: string) => Promise<number | null>;
  /** Throws SealedValueError when it cannot be opened. */
  findOne: (companyId: string, webhookId: string) => Promise<Webhook | null>;
  findTarget: (companyId: string, webhookId: string) => Promise<FoundWebhook | null>;
  /** The webhooks of one app, oldest first. */
  findByApp: (companyId: string, appId: string) => Promise<FoundWebhook[]>;
  /** Oldest first. */
  list: (companyId: string, page: WebhookPage) => Promise<FoundWebhook[]>;
  /**
   * Applies the changes if the webhook is still as `seen`, and returns the changed webhook. Null when
   * it was changed or deleted meanwhile.
   */
  update: (seen: Webhook, changes: WebhookChanges) => Promise<Webhook | null>;
  /** For the dispatcher, which acts for every company. */
  findMany: (webhookIds: readonly string[]) => Promise<FoundWebhook[]>;
  /** Returns true when it deleted one. */
  deleteOne: (companyId: string, webhookId: string) => Promise<boolean>;
}

export function createWebhookStore(db: mongo.Db, vault: Vault): WebhookStore {
  const webhooks = collection(db, 'webhooks');
  const toDocument = (webhook: Webhook) => sealWebhook(vault, webhook);
  return {
    ...createWebhookReads(db, vault),
    async insert(webhook) {
      await webhooks.insertOne(toDocument(webhook));
    },
    async update(seen, changes) {
      const changed = toDocument({ ...seen, ...changes });
      const replaced = await webhooks.replaceOne(
        { _id: seen.id, companyId: seen.companyId, updatedAt: new Date(seen.updatedAtMs) },
        changed,
      );
      return replaced.matchedCount === 1 ? openWebhook(vault, changed) : null;
    },
    async deleteOne(companyId, _id) {
      return (await documentsOf(db, 'webhooks', companyId).deleteMany({ _id })) === 1;
    },
  };
}

function createWebhookReads(
  db: mongo.Db,
  vault: Vault,
): Omit<WebhookStore, 'insert' | 'update' | 'deleteOne'> {
  const toFound = (document: WebhookDocument) => tryToOpen(vault, document);
  const own = (companyId: string) => documentsOf(db, 'webhooks', companyId);
  const byId = (companyId: string, _id: string) => own(companyId).findOne({ _id });
  return {
    has: async (companyId, id) => (await byId(companyId, id)) !== null,
    rateLimitOf: async (companyId, id) => (await byId(companyId, id))?.rateLimitPerSecond ?? null,
    async findOne(companyId, id) {
      const found = await byId(companyId, id);
      return found && openWebhook(vault, found);
    },
    async findTarget(companyId, id) {
      const found = await byId(companyId, id);
      return found && toFound(found);
    },
    async findByApp(companyId, appId) {
      return (await own(companyId).find({ appId }).sort({ _id: 1 }).toArray()).map(toFound);
    },
    async list(companyId, { appId, skip, limit }) {
      const found = own(companyId).find(appId === undefined ? {} : { appId });
      return (await found.sort({ _id: 1 }).skip(skip).limit(limit).toArray()).map(toFound);
    },
    async findMany(ids) {
      const found = collection(db, 'webhooks').find({ _id: { $in: [...ids] } });
      return (await found.toArray()).map(toFound);
    },
  };
}

function tryToOpen(vault: Vault, document: WebhookDocument): FoundWebhook {
  try {
    return openWebhook(vault, document);
  } catch (problem) {
    if (!(problem instanceof SealedValueError)) throw problem;
    const { _id: id, disabled, eventTypes } = document;
    return { id, disabled, eventTypes, problem };
  }
}
