import type {
  CancelStepName,
  FilterCancellation,
} from '@posthorn/domain/delivery/filter-cancellation.ts';
import type { StoppingCancellation } from '@posthorn/domain/delivery/filter-cancellation.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { documentsOf } from '../company-documents.ts';
import { isDuplicateKey } from '../connect.ts';
import type { FilterCancellationDocument } from '../documents.ts';
import { type Claimed, createWorkNotes, type WorkNotes } from '../work-notes.ts';

/** What a list may be limited to: the app or the webhook that the filter names. */
interface CancellationListFilter {
  appId?: string | undefined;
  webhookId?: string | undefined;
  beforeId?: string | undefined;
}

/**
 * The cancellations by filter. While one stops attempts, dispatchers have it in memory. Its work is a note of due work:
 * each page is stored before it is cancelled, so that it is counted once, whatever stops in between.
 */
export interface FilterCancellations extends WorkNotes<FilterCancellation> {
  /** Returns false when it is stored already. */
  insert: (cancellation: FilterCancellation, dueAtMs: number) => Promise<boolean>;
  /** How many of the company stop attempts at this time; counts up to `limit`. */
  countStopping: (companyId: string, nowMs: number, limit: number) => Promise<number>;
  findOne: (companyId: string, id: string) => Promise<FilterCancellation | null>;
  /** Newest first. */
  list: (
    companyId: string,
    filter: CancellationListFilter,
    limit: number,
  ) => Promise<FilterCancellation[]>;
  /** Those of all companies that stop attempts at this time, the newest first. */
  listStopping: (nowMs: number, limit: number) => Promise<StoppingCancellation[]>;
  /** Stores the page before anything of it is cancelled. Returns false when another process has the note. */
  beginPage: (note: Claimed<FilterCancellation>, page: readonly string[]) => Promise<boolean>;
  /** Adds the count and moves on, in one write. Returns false when another process has the note. */
  endPage: (note: Claimed<FilterCancellation>, end: PageEnd) => Promise<boolean>;
  /** Ends the work. Attempts are stopped for another minute. */
  finish: (note: Claimed<FilterCancellation>, atMs: number) => Promise<void>;
}

interface PageEnd {
  cancelled: number;
  step: CancelStepName;
  before: string | null;
  atMs: number;
}

/**
 * A first attempt that was not looked up waits in a dispatcher for 30 s, and as long again for its access token. All others
 * are looked up before their request, and their deliveries are stored as cancelled when the work has ended.
 */
const STOPS_AFTER_END_MS = 60_000;
/** While it runs: longer than a retry service is away. Then what it has not stored is delivered. */
const STOPS_WHILE_RUNNING_MS = 7 * 86_400_000;

export function createFilterCancellations(db: mongo.Db): FilterCancellations {
  const cancellations = collection(db, 'filterCancellations');
  const own = ({ id: _id, claim }: Claimed<FilterCancellation>) => ({ _id, claim });
  const change = async (
    note: Claimed<FilterCancellation>,
    update: mongo.UpdateFilter<FilterCancellationDocument>,
  ): Promise<boolean> => (await cancellations.updateOne(own(note), update)).matchedCount === 1;
  return {
    ...createWorkNotes({
      documents: cancellations,
      filters: [{ status: 'running' }],
      toNote: toCancellation,
    }),
    async insert(cancellation, dueAtMs) {
      try {
        await cancellations.insertOne(toDocument(cancellation, dueAtMs));
        return true;
      } catch (error) {
        if (isDuplicateKey(error)) return false;
        throw error;
      }
    },
    ...createReads(db),
    beginPage: (note, page) => change(note, { $set: { page: [...page] } }),
    endPage: (note, { cancelled, step, before, atMs }) =>
      change(note, {
        $set: { step, before, page: [], updatedAt: new Date(atMs) },
        $inc: { cancelled },
      }),
    async finish(note, atMs) {
      const stopsUntil = new Date(atMs + STOPS_AFTER_END_MS);
      await change(note, {
        $set: { status: 'done', before: null, page: [], updatedAt: new Date(atMs), stopsUntil },
        $unset: { claim: '', dueAt: '' },
      });
    },
  };
}

function createReads(
  db: mongo.Db,
): Pick<FilterCancellations, 'countStopping' | 'findOne' | 'list' | 'listStopping'> {
  return {
    countStopping: (companyId, nowMs, limit) =>
      documentsOf(db, 'filterCancellations', companyId).count(stoppingAt(nowMs), { limit }),
    async findOne(companyId, _id) {
      const found = await documentsOf(db, 'filterCancellations', companyId).findOne({ _id });
      return found && toCancellation(found);
    },
    async list(companyId, { appId, webhookId, beforeId }, limit) {
      const found = documentsOf(db, 'filterCancellations', companyId).find(
        {
          ...(appId !== undefined && { 'filter.appId': appId }),
          ...(webhookId !== undefined && { 'filter.webhookId': webhookId }),
          ...(beforeId !== undefined && { _id: { $lt: beforeId } }),
        },
        // 31 KB, and in no response.
        { projection: { page: 0 } },
      );
      return (await found.sort({ _id: -1 }).limit(limit).toArray()).map(toCancellation);
    },
    async listStopping(nowMs, limit) {
      const found = collection(db, 'filterCancellations')
        .find(stoppingAt(nowMs), { projection: { companyId: 1, filter: 1, beforeMs: 1 } })
        .sort({ stopsUntil: -1 })
        .limit(limit);
      return (await found.toArray()).map(({ companyId, filter, beforeMs }) => {
        return { companyId, filter, beforeMs };
      });
    },
  };
}

const stoppingAt = (nowMs: number) => ({ stopsUntil: { $gt: new Date(nowMs) } });

function toDocument(
  { id, createdAtMs, updatedAtMs, ...rest }: FilterCancellation,
  dueAtMs: number,
): FilterCancellationDocument {
  const given = Object.entries(rest.filter).filter(([, value]) => value !== undefined);
  return {
    _id: id,
    ...rest,
    filter: Object.fromEntries(given),
    stopsUntil: new Date(createdAtMs + STOPS_WHILE_RUNNING_MS),
    dueAt: new Date(dueAtMs),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

function toCancellation(document: FilterCancellationDocument): FilterCancellation {
  const { _id, companyId, filter, beforeMs, status, step, before, cancelled } = document;
  const times = {
    createdAtMs: document.createdAt.getTime(),
    updatedAtMs: document.updatedAt.getTime(),
  };
  const { page = [] } = document as Partial<FilterCancellationDocument>;
  return { id: _id, companyId, filter, beforeMs, status, step, before, page, cancelled, ...times };
}
