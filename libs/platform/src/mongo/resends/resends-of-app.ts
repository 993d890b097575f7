import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { ResendDocument } from '../documents.ts';

/** A resend of an app is worked off in parts, one for each webhook, begun in the order of their ids. */
export interface ResendPartStore {
  /** Parts that were begun and are not finished. */
  openParts: (resend: ResendDocument) => Promise<ResendDocument[]>;
  /** The webhook whose part was begun last; '' at the beginning. */
  lastWebhook: (resend: ResendDocument) => Promise<string>;
  /** Ids of the app's enabled webhooks behind `afterId`, ascending. */
  webhooksBehind: (resend: ResendDocument, afterId: string, limit: number) => Promise<string[]>;
  /**
   * As its company sees it: while an app's runs, its counts are those of its parts. Null for a part
   * itself and for what is not there.
   */
  findShown: (companyId: string, resendId: string) => Promise<ResendDocument | null>;
}

/** The part of an app's resend that goes to this webhook. Its id tells both, so that it exists once. */
export function partFor(resend: ResendDocument, webhookId: string, atMs: number): ResendDocument {
  const { _id: partOf, companyId, afterId, beforeId } = resend;
  const at = new Date(atMs);
  return {
    _id: `${partOf}/${webhookId}`,
    companyId,
    webhookId,
    partOf,
    afterId,
    beforeId,
    page: [],
    status: 'running',
    total: 0,
    succeeded: 0,
    failed: 0,
    createdAt: at,
    updatedAt: at,
  };
}

/** A range of ids, which needs no index of its own: `0` is the character behind `/`. */
export const partsOf = (resendId: string) => ({
  _id: { $gt: `${resendId}/`, $lt: `${resendId}0` },
});

export function createResendParts(db: mongo.Db): ResendPartStore {
  const resends = (companyId: string) => documentsOf(db, 'resends', companyId);
  return {
    openParts: ({ companyId, _id }) =>
      resends(companyId)
        .find({ ...partsOf(_id), status: 'running' })
        .toArray(),
    async lastWebhook({ companyId, _id }) {
      const parts = resends(companyId).find(partsOf(_id)).sort({ _id: -1 }).limit(1);
      return (await parts.toArray())[0]?.webhookId ?? '';
    },
    webhooksBehind: (resend, afterId, limit) => enabledWebhooks(db, resend, { afterId, limit }),
    async findShown(companyId, _id) {
      // The parts first: they are removed behind the end, whose counts hold then.
      const counts = await countsOfParts(db, companyId, _id);
      const found = await resends(companyId).findOne({ _id });
      if (!found || found.partOf !== undefined) return null;
      return found.status === 'running' ? { ...found, ...counts } : found;
    },
  };
}

/** A limit of 0 is none. */
export async function enabledWebhooks(
  db: mongo.Db,
  { companyId, appId = '' }: ResendDocument,
  { afterId, limit } = { afterId: '', limit: 0 },
): Promise<string[]> {
  const found = documentsOf(db, 'webhooks', companyId)
    .find({ appId, disabled: false, _id: { $gt: afterId } })
    .sort({ _id: 1 })
    .limit(limit);
  return (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(({ _id }) => _id);
}

type Counts = Pick<ResendDocument, 'succeeded' | 'failed' | 'updatedAt'>;

/** Null without parts. */
async function countsOfParts(
  db: mongo.Db,
  companyId: string,
  resendId: string,
): Promise<Counts | null> {
  const [counts] = await collection(db, 'resends')
    .aggregate<Counts>([
      { $match: { ...partsOf(resendId), companyId } },
      {
        $group: {
          _id: null,
          succeeded: { $sum: '$succeeded' },
          failed: { $sum: '$failed' },
          updatedAt: { $max: '$updatedAt' },
        },
      },
      { $unset: '_id' },
    ])
    .toArray();
  return counts ?? null;
}
