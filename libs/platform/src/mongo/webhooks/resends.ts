import {
  hasParts,
  type PageProgress,
  type Resend,
  type ResendFilter,
} from '@posthorn/domain/resend.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { type CompanyDocuments, documentsOf } from '../company-documents.ts';
import { isDuplicateKey } from '../connect.ts';
import type { Database } from '../days/days.ts';
import type { WorkNotes } from '../work-notes.ts';
import type { ResendDocument } from '../documents.ts';
import {
  countAllRemaining,
  countRemaining,
  enabledWebhooks,
  type FailedPage,
  nextPage,
} from './failed-deliveries.ts';
import { createWorkNotes, dueFor, IS_CLAIMED } from '../work-notes.ts';

interface PageResult {
  succeeded: number;
  failed: number;
}

/**
 * Resends, and the failed deliveries that they send again page by page, oldest first. Times are in
 * milliseconds since 1970. A change throws ResendMovedError unless the stored resend is at the same
 * position as the given one.
 */
export interface ResendStore extends WorkNotes<Resend> {
  /**
   * Returns false when another resend of the same app, of the failures of the same webhook, or of the whole company runs, or when
   * this one is stored already.
   */
  insert: (resend: Resend) => Promise<boolean>;
  remove: (resend: Resend) => Promise<void>;
  /** Stores how far the search for webhooks of an app with failures has come. */
  keepScanned: (resend: Resend, scannedTo: string) => Promise<void>;
  /** Stores the progress of the page, so that it is not read again. */
  keepProgress: (resend: Resend, progress: PageProgress) => Promise<Resend>;
  findOne: (companyId: string, resendId: string) => Promise<Resend | null>;
  /**
   * How many failed deliveries may still have to be sent, whatever their outcome; for an app those of its enabled
   * webhooks. Counts up to MOST_COUNTED. Of an event type it counts those of other types too when a webhook has more than
   * 10,000 failed ones.
   */
  count: (resend: Resend) => Promise<number>;
  /** The same without a limit, and of an event type exactly: a million take about a second, and of a type ten. */
  countAll: (resend: Resend) => Promise<number>;
  /**
   * The next failed deliveries; none for an app, whose parts have the pages. A page that looks for an event type or an
   * outcome may have none, and not be the last one.
   */
  nextPage: (resend: Resend, limit: number) => Promise<FailedPage>;
  /**
   * Moves a replay on to this message, behind those that its webhook does not want or has; a resend on to this delivery,
   * behind those that it does not look for.
   */
  skipTo: (resend: Resend, id: string, atMs: number) => Promise<Resend>;
  /** Stores the page before anything of it is sent, so that it is continued after a restart. */
  beginPage: (resend: Resend, page: readonly string[], atMs: number) => Promise<Resend>;
  /** Adds the counts and moves `afterId` to the end of the page, in one write. */
  endPage: (resend: Resend, result: PageResult, atMs: number) => Promise<Resend>;
  /**
   * Ends the resend with the counts that `resend` has, and removes its parts. An aborted one keeps its total: the
   * difference was not sent.
   */
  finish: (resend: Resend, atMs: number, status?: 'done' | 'aborted') => Promise<void>;
  /** Asks to abort a running resend. One that nobody works on is due at once then. May be repeated. */
  askToAbort: (companyId: string, resendId: string, atMs: number) => Promise<void>;
  /**
   * Makes those due that wait for the end of a hold, of one webhook or of all of a company, unless they are worked on.
   * Returns whether there are any.
   */
  continueHeld: (companyId: string, webhookId: string | null, atMs: number) => Promise<boolean>;
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
  /** Lists resends as the company sees them, newest first, without the parts. */
  listShown: (companyId: string, filter: ResendListFilter, limit: number) => Promise<Resend[]>;
}

/** The filters of a list. */
interface ResendListFilter {
  /** Resends of the whole app. */
  appId?: string | undefined;
  /** Resends of the webhook, and of single deliveries to it. */
  webhookId?: string | undefined;
  beforeId?: string | undefined;
}

/** Another process has moved this resend forward, or it has ended. */
export class ResendMovedError extends Error {}

/** From an index, so many take 0.1 s. */
const MOST_COUNTED = 100_000;

export function createResendStore(db: Database, mostCounted = MOST_COUNTED): ResendStore {
  const resends = collection(db, 'resends');
  return {
    ...createResendParts(db),
    insert: (resend) => insert(resends, resend),
    async remove({ id: _id }) {
      await resends.deleteOne({ _id });
    },
    ...createResendNotes(resends),
    async keepScanned({ id: _id, companyId }, scannedTo) {
      await documentsOf(db, 'resends', companyId).updateOne({ _id }, { $set: { scannedTo } });
    },
    keepProgress: (resend, progress) => move(db, resend, { $set: { progress } }),
    async findOne(companyId, _id) {
      const found = await documentsOf(db, 'resends', companyId).findOne({ _id });
      return found && toResend(found);
    },
    count: (resend) => countRemaining(db, resend, mostCounted),
    countAll: (resend) => countAllRemaining(db, resend),
    nextPage: (resend, limit) => nextPage(db, resend, limit),
    skipTo: (resend, afterId, atMs) =>
      move(db, resend, { $set: { afterId, updatedAt: new Date(atMs) } }),
    beginPage: (resend, page, atMs) =>
      move(db, resend, { $set: { page: [...page], updatedAt: new Date(atMs) } }),
    endPage: (resend, { succeeded, failed }, atMs) =>
      move(db, resend, {
        $set: {
          afterId: resend.page.at(-1) ?? resend.afterId,
          page: [],
          updatedAt: new Date(atMs),
        },
        $unset: { progress: '' },
        $inc: { succeeded, failed },
      }),
    finish: (resend, atMs, status = 'done') => finish(db, resend, { atMs, status }),
    async askToAbort(companyId, _id, atMs) {
      const asked = {
        _id,
        companyId,
        status: 'running',
        abortAskedAt: { $exists: false },
      } as const;
      const at = new Date(atMs);
      // One that is worked on is read again when its work ends (abortedMeanwhile).
      const dueAt = { $cond: [IS_CLAIMED, '$dueAt', at] };
      await resends.updateOne(asked, [{ $set: { abortAskedAt: at, dueAt } }]);
    },
    continueHeld: (companyId, webhookId, atMs) =>
      continueHeld(documentsOf(db, 'resends', companyId), webhookId, atMs),
  };
}

function createResendNotes(resends: mongo.Collection<ResendDocument>): WorkNotes<Resend> {
  const filters = KINDS.map(runningOf);
  const notes = createWorkNotes({ documents: resends, filters, toNote: toResend });
  return {
    ...notes,
    async putBack(resend, dueAtMs) {
      const dueAgainAtMs = await notes.putBack(resend, dueAtMs);
      const update = { $set: { dueAt: new Date(0) } };
      const { matchedCount } = await resends.updateOne(abortedMeanwhile(resend), update);
      return matchedCount === 1 ? 0 : dueAgainAtMs;
    },
  };
}

/** The resends that wait for the end of a hold, of one webhook or all. */
export const heldResends = (webhookId: string | null) =>
  ({
    ...(webhookId !== null && { webhookId }),
    status: 'running',
    'progress.isHeld': true,
  }) as const;

async function continueHeld(
  resends: CompanyDocuments<'resends'>,
  webhookId: string | null,
  atMs: number,
): Promise<boolean> {
  const held = await resends
    .find(heldResends(webhookId))
    .project<Pick<ResendDocument, '_id' | 'partOf'>>({ partOf: 1 })
    .toArray();
  // A part is sent with the resend of its app.
  const ids = held.map(({ _id, partOf }) =>
    partOf === undefined || partOf === REPLAY ? _id : partOf,
  );
  if (ids.length === 0) return false;
  await resends.updateMany(
    { _id: { $in: ids }, ...UNCLAIMED },
    { $set: { dueAt: new Date(atMs) } },
  );
  return true;
}

async function insert(resends: mongo.Collection<ResendDocument>, resend: Resend): Promise<boolean> {
  try {
    await resends.insertOne(toResendDocument(resend));
    return true;
  } catch (error) {
    if (isDuplicateKey(error)) return false;
    throw error;
  }
}

/** `partOf` of a replay. */
const REPLAY = 'replay';

const KINDS: readonly Resend['kind'][] = ['resend', 'replay'];

/** Resends that are claimed: a part is sent with the resend of its app. */
function runningOf(kind: Resend['kind']): mongo.Filter<ResendDocument> {
  return { status: 'running', partOf: kind === 'replay' ? REPLAY : { $exists: false } };
}

/** An abort that is known is looked at again within 20 s. */
const ABORT_KNOWN_MS = 30_000;

/** The resend, if a client asked to abort it while its work ended, which did not read that any more. */
function abortedMeanwhile({ id: _id }: Resend): mongo.Filter<ResendDocument> {
  const isKnown = { $lte: ['$dueAt', { $add: ['$abortAskedAt', ABORT_KNOWN_MS] }] };
  return { _id, ...UNCLAIMED, abortAskedAt: { $exists: true }, $expr: { $not: [isKnown] } };
}

const UNCLAIMED = { status: 'running', claim: { $exists: false } } as const;

/** The resends that may be claimed by a process that leaves these companies out. */
export function dueResends(
  nowMs: number,
  exceptCompanyIds: readonly string[],
  kind: Resend['kind'] = 'resend',
): mongo.Filter<ResendDocument> {
  return { ...runningOf(kind), ...(dueFor(nowMs, exceptCompanyIds) as object) };
}

interface Ended {
  atMs: number;
  status: 'done' | 'aborted';
}

async function finish(db: mongo.Db, resend: Resend, { atMs, status }: Ended): Promise<void> {
  const { companyId, succeeded, failed } = resend;
  const counts = { total: totalAtEnd(resend, status), succeeded, failed };
  await move(db, resend, {
    $set: { status, ...counts, updatedAt: new Date(atMs) },
    $unset: { progress: '', claim: '' },
  });
  if (!hasParts(resend)) return;
  await documentsOf(db, 'resends', companyId).deleteMany(partsOf(resend.id));
}

/** A delivery that failed since the resend began, or was removed meanwhile, makes its total inexact. */
export function totalAtEnd(
  { total, succeeded, failed }: Resend,
  status: 'done' | 'aborted',
): number {
  const sent = succeeded + failed;
  return status === 'done' ? sent : Math.max(total, sent);
}

async function move(
  db: mongo.Db,
  { id, companyId, afterId, page }: Resend,
  update: mongo.UpdateFilter<ResendDocument>,
): Promise<Resend> {
  const seen = { _id: id, afterId, page, status: 'running' } as const;
  const moved = await documentsOf(db, 'resends', companyId).updateOne(seen, update);
  if (!moved) throw new ResendMovedError(`resend ${id} was moved by another process`);
  return toResend(moved);
}

/** The parts of a resend, as a range of ids that needs no index of its own: `0` follows `/`. */
const partsOf = (resendId: string) => ({
  _id: { $gt: `${resendId}/`, $lt: `${resendId}0` },
});

/** A resend with parts has one for each of its webhooks, begun in the order of their ids. */
function createResendParts(
  db: mongo.Db,
): Pick<ResendStore, 'openParts' | 'lastWebhook' | 'webhooksAfter' | 'findShown' | 'listShown'> {
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
        $or: [{ partOf: { $exists: false } }, { partOf: REPLAY }],
      };
      // Up to 45 KiB each, and in no response.
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
  if (!found || toResend(found).partOf !== null) return null;
  return toResend(found.status === 'running' ? { ...found, ...counts } : found);
}

async function withParts(db: mongo.Db, resend: Resend): Promise<Resend> {
  if (!hasParts(resend) || resend.status !== 'running') return resend;
  return (await findShown(db, resend.companyId, resend.id)) ?? resend;
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

/** In documents times are dates, and a null owner is absent. */
function toResendDocument(resend: Resend): ResendDocument {
  const {
    id,
    kind,
    appId,
    partOf: whole,
    outcome,
    filter,
    eventTypes,
    progress,
    ...others
  } = resend;
  const { scannedTo, dueAtMs, abortAskedAtMs, createdAtMs, updatedAtMs, ...rest } = others;
  const partOf = kind === 'replay' ? REPLAY : whole;
  const spanOf = spanOwnerOf(resend);
  return {
    _id: id,
    ...rest,
    ...(appId !== null && { appId }),
    ...(partOf !== null && { partOf }),
    ...(outcome !== null && { outcome }),
    ...(filter !== null && { filter: withoutUndefined(filter) }),
    ...(eventTypes.length > 0 && { eventTypes }),
    ...(spanOf !== null && { spanOf }),
    ...(progress !== null && { progress }),
    ...(scannedTo !== '' && { scannedTo }),
    ...(dueAtMs !== null && { dueAt: new Date(dueAtMs) }),
    ...(abortAskedAtMs !== null && { abortAskedAt: new Date(abortAskedAtMs) }),
    createdAt: new Date(createdAtMs),
    updatedAt: new Date(updatedAtMs),
  };
}

function withoutUndefined(filter: ResendFilter): ResendFilter {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/**
 * The webhook whose failures of a span of time a new resend is for, or the company for those of all its webhooks. Null for
 * an app, for a part, and where the deliveries are known from the beginning: one delivery, or a page of dead letters.
 */
export function spanOwnerOf({ webhookId, appId, companyId, partOf, page }: Resend): string | null {
  if (appId !== null || partOf !== null || page.length > 0) return null;
  return webhookId ?? companyId;
}

function toResend(document: ResendDocument): Resend {
  const { _id, companyId, webhookId, appId, partOf, outcome, afterId, beforeId, page } = document;
  const { status, dueAt, abortAskedAt, total, succeeded, failed, createdAt, updatedAt } = document;
  return {
    id: _id,
    companyId,
    webhookId,
    afterId,
    beforeId,
    page,
    status,
    total,
    succeeded,
    failed,
    appId: appId ?? null,
    kind: partOf === REPLAY ? 'replay' : 'resend',
    partOf: partOf === REPLAY ? null : (partOf ?? null),
    outcome: outcome ?? null,
    filter: document.filter ?? null,
    eventTypes: document.eventTypes ?? [],
    progress: document.progress ?? null,
    scannedTo: document.scannedTo ?? '',
    dueAtMs: dueAt?.getTime() ?? null,
    abortAskedAtMs: abortAskedAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  };
}
