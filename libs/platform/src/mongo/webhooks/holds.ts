import type { Hold, Holders } from '@posthorn/domain/waiting.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import { isDuplicateKey } from '../connect.ts';
import type { Claimed, WorkNotes } from '../work-notes.ts';
import type { AppDocument, HoldNoteDocument, WebhookDocument } from '../documents.ts';
import { createWorkNotes, IS_CLAIMED } from '../work-notes.ts';

/** The object that is on hold, or was. */
export interface HoldPlace {
  /** The id of the webhook, the app or the company. */
  id: string;
  companyId: string;
  kind: HoldNoteDocument['kind'];
}

/** A note that deliveries may wait. Times are in milliseconds since 1970. */
export interface HoldNote extends HoldPlace {
  /** When the hold was last begun, changed or ended. */
  touchedAtMs: number;
  /** Most attempts to one webhook that are released in a second; null for no limit. */
  ratePerSecond: number | null;
}

/** A note keeps the fields that are absent. */
interface Touch {
  atMs: number;
  /** When it is to be looked at. */
  dueAtMs: number;
  isOpenEnded?: boolean;
  ratePerSecond?: number | null;
}

/**
 * The notes of holds: one is stored before the hold begins, and stays until nothing has waited for a while after its
 * end. So work that ends a hold is known before anything of it is done (docs/decisions/0014-long-work-leaves-a-note-first.md).
 * A process that works on a note keeps it when the note is touched: then it is due again as soon as the work ends.
 */
export interface HoldNotes extends WorkNotes<HoldNote> {
  /** Stores the note, or changes it. */
  touch: (place: HoldPlace, touch: Touch) => Promise<void>;
  /**
   * Gives these webhooks a note each, due at `nowMs`, for what waited for the hold of this note: that of an app or a company.
   * Returns how many got one. One that was touched since keeps its note; the end of a suspension changes no rate.
   */
  expand: (from: HoldNote, webhookIds: readonly string[], nowMs: number) => Promise<number>;
  /** Stores that the hold of the claimed note does not end by itself. */
  noteOpenEnded: (note: Claimed<HoldNote>) => Promise<void>;
  /** Stores that the hold of the claimed note has ended by itself. */
  noteEnd: (note: Claimed<HoldNote>, atMs: number) => Promise<void>;
  /** Removes the claimed note. Returns false when it was touched, or another process has it. */
  remove: (note: Claimed<HoldNote>) => Promise<boolean>;
  /** The rate of the note as it is now; null for no limit. */
  rateOf: (id: string) => Promise<number | null>;
  /** Whether any of these have a note. */
  hasAny: (ids: readonly string[]) => Promise<boolean>;
  /** When the hold was begun or changed that nobody has ended for the longest; null without one. */
  oldestMs: () => Promise<number | null>;
}

export function createHoldNotes(db: mongo.Db): HoldNotes {
  const notes = collection(db, 'holdNotes');
  const own = ({ id: _id, claim }: Claimed<HoldNote>) => ({ _id, claim });
  const untouched = (note: Claimed<HoldNote>) => ({
    ...own(note),
    touchedAt: new Date(note.touchedAtMs),
  });
  const claimed = createWorkNotes({ documents: notes, toNote });
  return {
    ...claimed,
    async putBack(note, dueAtMs) {
      const update = { $set: { dueAt: new Date(dueAtMs) }, $unset: { claim: '' as const } };
      const { matchedCount } = await notes.updateOne(untouched(note), update);
      return matchedCount === 1 ? dueAtMs : claimed.putBack(note, 0);
    },
    touch: (place, touch) => touchNote(notes, place, touch),
    expand: (from, webhookIds, nowMs) => expandNote(notes, from, { webhookIds, nowMs }),
    async noteOpenEnded(note) {
      await notes.updateOne(untouched(note), { $set: { isOpenEnded: true } });
    },
    async noteEnd(note, atMs) {
      await notes.updateOne(own(note), { $set: { touchedAt: new Date(atMs) } });
    },
    remove: async (note) => (await notes.deleteOne(untouched(note))).deletedCount === 1,
    rateOf: async (_id) => (await notes.findOne({ _id }))?.ratePerSecond ?? null,
    hasAny: async (ids) => (await notes.findOne({ _id: { $in: [...ids] } })) !== null,
    async oldestMs() {
      const [oldest] = await notes
        .find({ isOpenEnded: true })
        .sort({ touchedAt: 1 })
        .limit(1)
        .toArray();
      return oldest?.touchedAt.getTime() ?? null;
    },
  };
}

async function touchNote(
  notes: mongo.Collection<HoldNoteDocument>,
  { id: _id, companyId, kind }: HoldPlace,
  { atMs, dueAtMs, isOpenEnded, ratePerSecond }: Touch,
): Promise<void> {
  const set = {
    companyId,
    kind,
    touchedAt: new Date(atMs),
    ...unlessClaimed(dueAtMs),
    ...(isOpenEnded !== undefined && { isOpenEnded: isOpenEnded || '$$REMOVE' }),
    ...(ratePerSecond !== undefined && { ratePerSecond: ratePerSecond ?? '$$REMOVE' }),
  };
  await notes.updateOne({ _id }, [{ $set: set }], { upsert: true });
}

/** A process that works on the note keeps its claim; after its crash the claim ends by itself. */
function unlessClaimed(dueAtMs: number) {
  return {
    claim: { $cond: [IS_CLAIMED, '$claim', '$$REMOVE'] },
    dueAt: { $cond: [IS_CLAIMED, '$dueAt', new Date(dueAtMs)] },
  };
}

async function expandNote(
  notes: mongo.Collection<HoldNoteDocument>,
  { companyId, kind, touchedAtMs, ratePerSecond }: HoldNote,
  { webhookIds, nowMs }: { webhookIds: readonly string[]; nowMs: number },
): Promise<number> {
  const touchedAt = new Date(touchedAtMs);
  const ids = { $in: [...webhookIds] };
  const newer = await notes
    .find({ _id: ids, touchedAt: { $gte: touchedAt } })
    .project<{ _id: string }>({ _id: 1 })
    .toArray();
  const keep = new Set(newer.map(({ _id }) => _id));
  const missing = webhookIds.filter((id) => !keep.has(id));
  if (missing.length === 0) return 0;
  const rate = kind !== 'company' && { ratePerSecond: ratePerSecond ?? '$$REMOVE' };
  const set = { companyId, kind: 'webhook', touchedAt, ...unlessClaimed(nowMs), ...rate };
  const writes = missing.map((_id): mongo.AnyBulkWriteOperation<HoldNoteDocument> => {
    const filter = { _id, touchedAt: { $lt: touchedAt } };
    return { updateOne: { filter, update: [{ $set: set }], upsert: true } };
  });
  const { upsertedCount, modifiedCount } = await unlessThere(() =>
    notes.bulkWrite(writes, { ordered: false }),
  );
  return upsertedCount + modifiedCount;
}

/** The hold of a webhook may be touched between the read and the write: it has its note then. */
async function unlessThere(
  write: () => Promise<mongo.BulkWriteResult>,
): Promise<Pick<mongo.BulkWriteResult, 'upsertedCount' | 'modifiedCount'>> {
  try {
    return await write();
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    const { upsertedCount, modifiedCount } = error as mongo.MongoBulkWriteError;
    return { upsertedCount, modifiedCount };
  }
}

function toNote({ _id: id, companyId, kind, touchedAt, ...document }: HoldNoteDocument): HoldNote {
  const { ratePerSecond = null } = document;
  return { id, companyId, kind, touchedAtMs: touchedAt.getTime(), ratePerSecond };
}

/** The state of a webhook that decides about its waiting deliveries. */
export interface WebhookHolders extends Holders {
  /** Null after its deletion. */
  webhook: Pick<
    WebhookDocument,
    'companyId' | 'appId' | 'disabled' | 'held' | 'cancelBeforeMs' | 'rateLimitPerSecond'
  > | null;
}

/** The holds of webhooks and apps, as they are stored. Needs no encryption key: it reads no sealed value. */
export type HoldStates = ReturnType<typeof createHoldStates>;

export function createHoldStates(db: mongo.Db) {
  const webhooks = collection(db, 'webhooks');
  const apps = collection(db, 'apps');
  return {
    /** By webhook id. */
    holdersOf: (places: readonly WebhookPlace[]): Promise<Map<string, WebhookHolders>> =>
      readHolders(db, places),
    /** The hold of a webhook or an app; null without one, and for a disabled webhook, whose deliveries are cancelled. */
    async holdOf({ id: _id, kind }: HoldPlace): Promise<Hold | null> {
      if (kind === 'company') return null;
      const found =
        kind === 'webhook'
          ? await webhooks.findOne({ _id, disabled: false }, { projection: { held: 1 } })
          : await apps.findOne({ _id }, { projection: { held: 1 } });
      return found?.held ?? null;
    },
    isSuspended: async (companyId: string): Promise<boolean> =>
      (await suspendedAmong(db, [companyId])).has(companyId),
    /** Removes the hold of a webhook or an app whose time is over. Returns true when this call did. */
    clearEnded: (place: HoldPlace, nowMs: number): Promise<boolean> => clearEnded(db, place, nowMs),
    /** The ids of the webhooks of an app after `afterId`, ascending. */
    async webhooksOfApp(
      { id: appId, companyId }: Pick<HoldPlace, 'id' | 'companyId'>,
      afterId: string,
      limit: number,
    ): Promise<string[]> {
      const found = webhooks.find({ companyId, appId, _id: { $gt: afterId } });
      const page = found.sort({ _id: 1 }).limit(limit).project<{ _id: string }>({ _id: 1 });
      return (await page.toArray()).map(({ _id }) => _id);
    },
  };
}

interface WebhookPlace {
  companyId: string;
  webhookId: string;
}

async function readHolders(
  db: mongo.Db,
  places: readonly WebhookPlace[],
): Promise<Map<string, WebhookHolders>> {
  const found = await collection(db, 'webhooks')
    .find({ _id: { $in: places.map(({ webhookId }) => webhookId) } })
    .project<StateDocument>(STATE)
    .toArray();
  const states = new Map(
    found.map(({ held = null, cancelBeforeMs = null, rateLimitPerSecond = null, ...state }) => {
      return [state._id, { ...state, held, cancelBeforeMs, rateLimitPerSecond }];
    }),
  );
  const appIds = new Set(found.flatMap(({ appId }) => appId ?? []));
  const companyIds = new Set(places.map(({ companyId }) => companyId));
  const holds = await holdsOfApps(db, [...appIds]);
  const suspended = await suspendedAmong(db, [...companyIds]);
  return new Map(
    places.map(({ companyId, webhookId }) => {
      const webhook = states.get(webhookId) ?? null;
      const appHeld = holds.get(webhook?.appId ?? '') ?? null;
      return [webhookId, { webhook, appHeld, isSuspended: suspended.has(companyId) }];
    }),
  );
}

async function clearEnded(
  db: mongo.Db,
  { id: _id, kind }: HoldPlace,
  nowMs: number,
): Promise<boolean> {
  if (kind === 'company') return false;
  const filter = { _id, 'held.untilMs': { $lte: nowMs } };
  // Later than the last time, even within one millisecond: it is the version of the webhook.
  const updatedAt = { $max: [new Date(nowMs), { $add: ['$updatedAt', 1] }] };
  const { modifiedCount } =
    kind === 'webhook'
      ? await collection(db, 'webhooks').updateOne(filter, [{ $set: { held: null, updatedAt } }])
      : await collection(db, 'apps').updateOne(filter, [
          { $set: { updatedAt } },
          { $unset: 'held' },
        ]);
  return modifiedCount === 1;
}

const STATE = {
  companyId: 1,
  appId: 1,
  disabled: 1,
  held: 1,
  cancelBeforeMs: 1,
  rateLimitPerSecond: 1,
} as const;

type StateDocument = Pick<WebhookDocument, '_id' | 'companyId' | 'appId' | 'disabled'> & {
  held?: Hold | null;
  cancelBeforeMs?: number | null;
  rateLimitPerSecond?: number | null;
};

/** The holds of these apps of all companies, by app; an app that is not on hold is missing. */
export async function holdsOfApps(
  db: mongo.Db,
  ids: readonly string[],
): Promise<Map<string, Hold>> {
  if (ids.length === 0) return new Map();
  const found = collection(db, 'apps').find({ _id: { $in: [...ids] }, held: { $exists: true } });
  const apps = await found.project<Pick<AppDocument, '_id' | 'held'>>({ held: 1 }).toArray();
  return new Map(apps.flatMap(({ _id, held }) => (held ? [[_id, held] as const] : [])));
}

async function suspendedAmong(db: mongo.Db, ids: readonly string[]): Promise<Set<string>> {
  const found = collection(db, 'companies').find({
    _id: { $in: [...ids] },
    suspendedAt: { $exists: true },
  });
  return new Set(
    (await found.project<{ _id: string }>({ _id: 1 }).toArray()).map(({ _id }) => _id),
  );
}
