import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { mongo } from 'mongoose';

/** What a list of other things shows of a webhook. No secret is opened for it. */
export interface WebhookOutline {
  id: string;
  url: string;
  appId: string | null;
}

/** Returns those that exist, by id. */
export type ReadWebhookOutlines = (
  companyId: string,
  ids: readonly string[],
) => Promise<Map<string, WebhookOutline>>;

const OUTLINE = { url: 1, appId: 1 } as const;

export function createReadWebhookOutlines(db: mongo.Db): ReadWebhookOutlines {
  return async (companyId, ids) => {
    const found = documentsOf(db, 'webhooks', companyId).find({ _id: { $in: [...ids] } });
    const documents = found.project<{ _id: string; url: string; appId: string | null }>(OUTLINE);
    const outlines = (await documents.toArray()).map(({ _id: id, ...shown }) => ({ id, ...shown }));
    return new Map(outlines.map((outline) => [outline.id, outline]));
  };
}
