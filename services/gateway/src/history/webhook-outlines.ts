import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { mongo } from 'mongoose';

/** A webhook as lists of other things show it. No secret is opened for it. */
export interface WebhookOutline {
  id: string;
  url: string;
  appId: string | null;
}

/** Returns the webhooks that exist, by id. */
export type ReadWebhookOutlines = (
  companyId: string,
  ids: readonly string[],
) => Promise<Map<string, WebhookOutline>>;

/** Returns those of the webhooks that exist and are enabled. */
export type ReadEnabledWebhooks = (
  companyId: string,
  ids: readonly string[],
) => Promise<Set<string>>;

export function createReadEnabledWebhooks(db: mongo.Db): ReadEnabledWebhooks {
  return async (companyId, ids) => {
    const enabled = { _id: { $in: [...ids] }, disabled: false };
    const found = documentsOf(db, 'webhooks', companyId).find(enabled);
    const read = await found.project<{ _id: string }>({ _id: 1 }).toArray();
    return new Set(read.map(({ _id }) => _id));
  };
}

export function createReadWebhookOutlines(db: mongo.Db): ReadWebhookOutlines {
  return async (companyId, ids) => {
    const found = documentsOf(db, 'webhooks', companyId).find({ _id: { $in: [...ids] } });
    const shown = found.project<Omit<WebhookOutline, 'id'> & { _id: string }>({ url: 1, appId: 1 });
    const outlines = (await shown.toArray()).map(({ _id: id, url, appId }) => ({ id, url, appId }));
    return new Map(outlines.map((outline) => [outline.id, outline]));
  };
}
