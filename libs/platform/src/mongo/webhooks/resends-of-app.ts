import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { ResendDocument } from '../documents.ts';
import { toResend } from './resends.ts';

/** The parts of an app's resend: one for each webhook, begun in the order of the webhooks' ids. */
export interface ResendPartStore {
  /** Parts that were begun and are not finished. */
  openParts: (resend: Resend) => Promise<Resend[]>;
  /** The webhook whose part was begun last; '' when none was. */
  lastWebhook: (resend: Resend) => Promise<string>;
  /** The ids of the app's enabled webhooks after `afterId`, ascending. */
  webhooksAfter: (resend: Resend, afterId: string, limit: number) => Promise<string[]>;
  /**
   * The resend as its company sees it: the counts of an app's running resend include those of its
   * parts. Null when there is no such resend, or when it is a part.
   */
  findShown: (companyId: string, resendId: string) => Promise<Resend | null>;
  /** As the company sees them, newest first, without the parts. */
  listShown: (companyId: string, filter: ResendFilter, limit: number) => Promise<Resend[]>;
}

/** What a list may be limited to. */
interface ResendFilter {
  /** Those of the whole app. */
  appId?: string | undefined;
  /** Those of the webhook, and of single deliveries to it. */
  webhookId?: string | undefined;
  beforeId?: string | undefined;
}

/** The parts of a resend, as a range of ids that needs no index of its own: `0` follows `/`. */
export const partsOf = (resendId: string) => ({
  _id: { $gt: `${resendId}/`, $lt: `${resendId}0` },
});

export function createResendParts(db: mongo.Db): ResendPartStore {
  const resends = (companyId: string) => documentsOf(db, 'resends', companyId);
  return {
    async openParts({ companyId, id }) {
      const open = resends(companyId).find({ ...partsOf(id), status: 'running' });
      return (await open.toArray()).map(toResend);
    },
    async lastWebhook({ companyId, id }) {
      const parts = resends(companyId).find(partsOf(id)).sort({ _id: -1 }).limit(1);
      return (await parts.toArray())[0]?.webhookId ?? '';
    },
    webhooksAfter: (resend, afterId, limit) => enabledWebhooks(db, resend, { afterId, limit }),
    findShown: (companyId, resendId) => findShown(db, companyId, resendId),
    async listShown(companyId, { appId, webhookId, beforeId }, limit) {
      const filter = {
        ...(appId !== undefined && { appId }),
        ...(webhookId !== undefined && { webhookId }),
        ...(beforeId !== undefined && { _id: { $lt: beforeId } }),
        partOf: { $exists: false },
      };
      // Up to 45 KiB each, and shown to nobody.
      const found = resends(companyId)
        .find(filter, { projection: { progress: 0 } })
        .sort({ _id: -1 })
        .limit(limit);
      const listed = (await found.toArray()).map(toResend);
      return Promise.all(listed.map((each) => withParts(db, each)));
    },
  };
}

async function findShown(db: mongo.Db, companyId: string, _id: string): Promise<Resend | null> {
  // Reads the parts first: they are removed after the resend is done, whose own counts hold then.
  const counts = await countsOfParts(db, companyId, _id);
  const found = await documentsOf(db, 'resends', companyId).findOne({ _id });
  if (!found || found.partOf !== undefined) return null;
  return toResend(found.status === 'running' ? { ...found, ...counts } : found);
}

async function withParts(db: mongo.Db, resend: Resend): Promise<Resend> {
  if (resend.appId === null || resend.status !== 'running') return resend;
  return (await findShown(db, resend.companyId, resend.id)) ?? resend;
}

/** To decode 10,000 at once takes 20 ms of CPU time. */
const IDS_OF_A_BATCH = 1_000;

/** The ids of the enabled webhooks of an app's resend. A limit of 0 means no limit. */
export async function enabledWebhooks(
  db: mongo.Db,
  { id, companyId, appId }: Resend,
  { afterId, limit } = { afterId: '', limit: 0 },
): Promise<string[]> {
  if (appId === null) throw new ImpossibleError(`resend ${id} is not of an app`);
  const found = documentsOf(db, 'webhooks', companyId)
    .find({ appId, disabled: false, _id: { $gt: afterId } })
    .sort({ _id: 1 })
    .limit(limit)
    .batchSize(IDS_OF_A_BATCH);
  return (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(({ _id }) => _id);
}

type Counts = Pick<ResendDocument, 'succeeded' | 'failed' | 'updatedAt'>;

/** The sums over the parts; null when there are none. */
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
