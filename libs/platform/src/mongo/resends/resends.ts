import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import type { ResendDocument } from '../documents.ts';
import { DUPLICATE_KEY } from '../duplicate-key.ts';
import {
  createResendParts,
  enabledWebhooks,
  partsOf,
  type ResendPartStore,
} from './resends-of-app.ts';

export type Resend = ResendDocument;

/** True of the resend of one delivery; a span always ends behind where it begins, or is empty. */
export function isOfOne({ afterId, beforeId }: Resend): boolean {
  return afterId === beforeId;
}

export interface PageResult {
  succeeded: number;
  failed: number;
}

/** Resends and the failed deliveries that they go through, oldest first, one page after the other. */
export interface ResendStore extends ResendPartStore {
  /** False when another resend of the same app runs, or when this one is stored already. */
  insert: (resend: Resend) => Promise<boolean>;
  remove: (resend: Resend) => Promise<void>;
  /** Not finished yet, of every company, with ids behind `afterId`, without parts; oldest first. */
  listRunning: (afterId: string, limit: number) => Promise<Resend[]>;
  findOne: (companyId: string, resendId: string) => Promise<Resend | null>;
  /** Failed deliveries between the bounds that are still ahead; of an app's enabled webhooks. */
  count: (resend: Resend) => Promise<number>;
  /** Empty at the end, and for an app, whose parts have the pages. */
  nextPage: (resend: Resend, limit: number) => Promise<string[]>;
  /** Notes the page before anything of it is sent, so that a restart goes on with it. */
  beginPage: (resend: Resend, page: readonly string[], atMs: number) => Promise<Resend>;
  /** Counts the page and moves behind it, at once and only once. */
  endPage: (resend: Resend, result: PageResult, atMs: number) => Promise<Resend>;
  /** With the counts of `resend`; removes its parts. */
  finish: (resend: Resend, atMs: number) => Promise<void>;
}

/** Somebody else has moved this resend on. */
export class ResendMovedError extends Error {}

export function createResendStore(db: mongo.Db): ResendStore {
  const resends = collection(db, 'resends');
  return {
    ...createResendParts(db),
    insert: (resend) => insert(resends, resend),
    async remove({ _id }) {
      await resends.deleteOne({ _id });
    },
    listRunning: (afterId, limit) =>
      resends
        .find({ status: 'running', _id: { $gt: afterId }, partOf: { $exists: false } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    findOne: (companyId, _id) => documentsOf(db, 'resends', companyId).findOne({ _id }),
    count: (resend) => countAhead(db, resend),
    nextPage: (resend, limit) => nextPage(db, resend, limit),
    beginPage: (resend, page, atMs) =>
      move(db, resend, { $set: { page: [...page], updatedAt: new Date(atMs) } }),
    endPage: (resend, { succeeded, failed }, atMs) =>
      move(db, resend, {
        $set: {
          afterId: resend.page.at(-1) ?? resend.afterId,
          page: [],
          updatedAt: new Date(atMs),
        },
        $inc: { succeeded, failed },
      }),
    finish: (resend, atMs) => finish(db, resend, atMs),
  };
}

async function insert(resends: mongo.Collection<Resend>, resend: Resend): Promise<boolean> {
  try {
    await resends.insertOne(resend);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === DUPLICATE_KEY) return false;
    throw error;
  }
}

async function finish(db: mongo.Db, resend: Resend, atMs: number): Promise<void> {
  const { companyId, succeeded, failed } = resend;
  const total = succeeded + failed;
  const counts = { total, succeeded, failed };
  await move(db, resend, { $set: { status: 'done', ...counts, updatedAt: new Date(atMs) } });
  if (resend.appId === undefined) return;
  await documentsOf(db, 'resends', companyId).deleteMany(partsOf(resend._id));
}

/**
 * Asked for one by one: the partial index of failures serves a single status, while a list that is
 * shorter than the index's own makes the planner read every delivery of the time span (MongoDB 7.0).
 */
const FAILED = ['exhausted', 'cancelled'] as const;

function ahead(
  webhookId: string | { $in: string[] },
  { afterId, beforeId }: Resend,
  status: (typeof FAILED)[number],
) {
  return {
    webhookId,
    status,
    _id: { $gt: afterId, $lt: beforeId },
  };
}

async function countAhead(db: mongo.Db, resend: Resend): Promise<number> {
  const deliveries = documentsOf(db, 'deliveries', resend.companyId);
  const webhookId = resend.webhookId ?? { $in: await enabledWebhooks(db, resend) };
  const counts = FAILED.map((status) => deliveries.count(ahead(webhookId, resend, status)));
  return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
}

async function nextPage(db: mongo.Db, resend: Resend, limit: number): Promise<string[]> {
  const { companyId, webhookId } = resend;
  if (webhookId === null) return [];
  const deliveries = documentsOf(db, 'deliveries', companyId);
  const pages = FAILED.map((status) => {
    const found = deliveries
      .find(ahead(webhookId, resend, status))
      .sort({ _id: 1 })
      .limit(limit);
    return found.project<{ _id: string }>({ _id: 1 }).toArray();
  });
  const ids = (await Promise.all(pages)).flat().map(({ _id }) => _id);
  return ids.sort().slice(0, limit);
}

async function move(
  db: mongo.Db,
  { _id, companyId, afterId, page }: Resend,
  update: mongo.UpdateFilter<Resend>,
): Promise<Resend> {
  const seen = { _id, afterId, page };
  const moved = await documentsOf(db, 'resends', companyId).updateOne(seen, update);
  if (!moved) throw new ResendMovedError(`resend ${_id} was moved by another process`);
  return moved;
}
