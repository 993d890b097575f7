import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { mongo } from 'mongoose';
import { databaseClockMs } from '../database-time.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds, writeByDays } from '../days/read-days.ts';
import { collection } from '../collections.ts';
import type { ErasureDocument, MessageDocument } from '../documents.ts';

export interface MessageRef {
  messageId: string;
  companyId: string;
}

/** A delivery whose outcome is recorded. */
export interface RecordedRef extends MessageRef {
  deliveryId: string;
}

/**
 * Erases the payloads of messages whose every delivery is delivered. A message with one target has its payload erased
 * as soon as that is delivered. A message with more is noted: its deliveries are looked up later, by another process.
 * Everything may be repeated.
 */
export interface PayloadErasure {
  /** Of these messages. Resolves with the ids of those that are noted, because one of these deliveries is delivered. */
  eraseOrNote: (recorded: readonly RecordedRef[]) => Promise<string[]>;
  /** Notes messages that `eraseOrNote` has noted before; no message is read for it. */
  note: (messages: readonly MessageRef[]) => Promise<void>;
  /** Whether the time of a noted message has come. */
  hasDue: (nowMs: number) => Promise<boolean>;
  /**
   * Looks up the next deliveries of at most 100 noted messages whose time has come, of all companies in turn. Resolves with
   * the number of those messages. To be called by one process at a time.
   */
  checkNoted: () => Promise<number>;
}

/**
 * A message is checked when it had no success for so long. Each success puts the check off, so that those of a message
 * with 10,000 targets are not looked up for each of them. Nothing but a success can complete a message.
 */
export const CHECK_AFTER_MS = 3_000;
const NOTES_PER_CHECK = 100;
/** Targets of one message in one check: the others have their turn between its slices. */
const SLICE = 100;
/** 2 µs each, and 80 kB of a query. */
const MAX_IDS = 2_000;

export function createPayloadErasure(
  db: Database,
  checkAfterMs: number = CHECK_AFTER_MS,
): PayloadErasure {
  const { messages, deliveries } = db.days;
  const notes = collection(db, 'erasures');
  const note = async (noted: readonly MessageRef[]): Promise<void> => {
    if (noted.length === 0) return;
    const writes = noted.map((each) => noteOf(each, checkAfterMs));
    await notes.bulkWrite(writes, { ordered: false });
  };
  return {
    note,
    async eraseOrNote(recorded) {
      const ids = await deliveredOf(deliveries, recorded);
      if (ids.length === 0) return [];
      const toOne = { targets: { $size: 1 }, ...NONE_ADDED };
      if ((await erase(messages, ids, toOne)) === ids.length) return [];
      const noted = new Set(await withMore(messages, ids));
      const refs = new Map(recorded.map((each) => [each.messageId, each]));
      await note([...refs.values()].filter(({ messageId }) => noted.has(messageId)));
      return [...noted];
    },
    hasDue: async (nowMs) => (await notes.findOne({ dueAt: { $lte: new Date(nowMs) } })) !== null,
    async checkNoted() {
      const due = await readDue(db, notes);
      if (due.length === 0) return 0;
      const slices = await readSlices(messages, due);
      const delivered = await deliveredAmong(deliveries, slices.values());
      const judged = due.map((note) => {
        return { note, verdict: judge(note, slices.get(note._id), delivered) };
      });
      const complete = judged.filter(({ verdict }) => verdict.what === 'erase');
      await eraseComplete(
        messages,
        complete.flatMap(({ note }) => slices.get(note._id) ?? []),
      );
      await notes.bulkWrite(
        judged.map(({ note, verdict }) => updateOf(note, verdict)),
        { ordered: false },
      );
      return due.length;
    },
  };
}

/** The ids of the messages that have one of these deliveries delivered. */
async function deliveredOf(
  deliveries: Days['deliveries'],
  recorded: readonly RecordedRef[],
): Promise<string[]> {
  const messageIds = new Map(recorded.map(({ deliveryId, messageId }) => [deliveryId, messageId]));
  const delivered = await readDelivered(deliveries, [...messageIds.keys()]);
  return [...new Set(delivered.flatMap((id) => messageIds.get(id) ?? []))];
}

/** As a majority has stored it: a payload is not erased for a success that may be rolled back. */
async function readDelivered(
  deliveries: Days['deliveries'],
  ids: readonly string[],
): Promise<string[]> {
  const found = await readByIds(deliveries, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay }, status: 'delivered' }, { readConcern: { level: 'majority' } })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  return found.map(({ _id }) => _id);
}

const UNERASED = { isPayloadErased: { $ne: true } } as const;

const ERASED = { payload: '', isPayloadErased: true } as const;

/** Resolves with the number of messages whose payload it erased. */
async function erase(
  messages: Days['messages'],
  ids: readonly string[],
  filter: mongo.Filter<MessageDocument>,
): Promise<number> {
  const itself = (id: string): string => id;
  const results = await writeByDays(messages, ids, itself, (documents, ofDay) =>
    documents.updateMany({ _id: { $in: [...ofDay] }, ...UNERASED, ...filter }, { $set: ERASED }),
  );
  return results.reduce((sum, { modifiedCount }) => sum + modifiedCount, 0);
}

/** The ids of the messages that have more than one target. */
async function withMore(messages: Days['messages'], ids: readonly string[]): Promise<string[]> {
  const isWide = { $or: [{ 'targets.1': { $exists: true } }, { addedTargets: { $exists: true } }] };
  const found = await readByIds(messages, ids, (documents, ofDay) =>
    documents
      .find({ _id: { $in: ofDay }, ...UNERASED, ...isWide })
      .project<{ _id: string }>({ _id: 1 })
      .toArray(),
  );
  return found.map(({ _id }) => _id);
}

const NONE_ADDED = { addedTargets: { $exists: false } } as const;

/** A replay may add a target after these were looked up: its payload is not erased then. */
async function eraseComplete(
  messages: Days['messages'],
  complete: readonly Slice[],
): Promise<void> {
  const idOf = ({ messageId }: Slice): string => messageId;
  const [plain, replayed] = [
    complete.filter(({ addedTargets }) => !addedTargets),
    complete.filter(({ addedTargets }) => addedTargets),
  ];
  await erase(messages, plain.map(idOf), NONE_ADDED);
  for (const { messageId, addedTargets = [] } of replayed) {
    await erase(messages, [messageId], { addedTargets });
  }
}

type NoteWrite = mongo.AnyBulkWriteOperation<ErasureDocument>;

/** The clock is that of the database, because another process compares it. */
function noteOf({ messageId: _id, companyId }: MessageRef, checkAfterMs: number): NoteWrite {
  const dueAt = { $add: ['$$NOW', checkAfterMs] };
  const createdAt = { $ifNull: ['$createdAt', '$$NOW'] };
  const checked = { $ifNull: ['$checked', 0] };
  return {
    updateOne: {
      filter: { _id },
      update: [{ $set: { companyId, dueAt, createdAt, checked } }],
      upsert: true,
    },
  };
}

/** A note whose time has come. */
export interface DueNote {
  _id: string;
  companyId: string;
  dueAt: Date;
  checked: number;
}

/**
 * Returns the oldest due notes, of all companies in turn: behind 1,000 messages of one company, to 200 webhooks each, that of
 * another one waited for ten seconds. A company that fills more than a fifth of what was read is left out of the next read.
 */
async function readDue(db: mongo.Db, notes: mongo.Collection<ErasureDocument>): Promise<DueNote[]> {
  const dueAt = { $lte: new Date(await databaseClockMs(db)) };
  const known = new Map<string, DueNote>();
  const full: string[] = [];
  for (let reads = 0; reads < MAX_READS; reads += 1) {
    const others = full.length > 0 && { companyId: { $nin: full } };
    const found = await notes
      .find({ dueAt, ...others })
      .sort({ dueAt: 1 })
      .limit(NOTES_PER_CHECK)
      .toArray();
    for (const each of found) {
      if (each.dueAt) known.set(each._id, { companyId: '', ...each, dueAt: each.dueAt });
    }
    const large = companiesWithMany(found);
    if (found.length < NOTES_PER_CHECK || large.length === 0) break;
    full.push(...large);
  }
  return inTurn([...known.values()]).slice(0, NOTES_PER_CHECK);
}

/** Of companies with many notes each, 80 are left out at most. A read takes some milliseconds. */
const MAX_READS = 20;
const MANY = NOTES_PER_CHECK / 5;

/** Notes of earlier versions are of no company, and cannot be left out: they come in their order. */
function companiesWithMany(notes: readonly ErasureDocument[]): string[] {
  const groups = Map.groupBy(notes, ({ companyId }) => companyId);
  return [...groups].flatMap(([id, { length }]) => (id !== undefined && length > MANY ? [id] : []));
}

/** The oldest note of each company first, then the second one of each. */
export function inTurn(due: readonly DueNote[]): DueNote[] {
  const byAge = due.toSorted((a, b) => a.dueAt.getTime() - b.dueAt.getTime());
  const groups = Map.groupBy(byAge, ({ companyId }) => companyId);
  const placed = [...groups.values()].flatMap((ofCompany) => [...ofCompany.entries()]);
  return placed.toSorted(([a], [b]) => a - b).map(([, note]) => note);
}

/** Targets of a message that a check looks up. */
interface Slice {
  messageId: string;
  webhookIds: readonly string[];
  /** No other targets follow. */
  isLast: boolean;
  /** The targets of the whole message, as they were read. */
  addedTargets?: string[];
}

/** By message id. Messages that are not stored are missing, and those whose payload is erased. */
async function readSlices(
  messages: Days['messages'],
  due: readonly DueNote[],
): Promise<Map<string, Slice>> {
  const slices = new Map<string, Slice>();
  // Nearly all begin with their first target.
  for (const [checked, some] of Map.groupBy(due, (note) => note.checked)) {
    const ids = some.map(({ _id }) => _id);
    // One more shows whether others follow. The server sends nothing else of messages that may have 600 KB.
    const all = { $concatArrays: ['$targets', { $ifNull: ['$addedTargets', []] }] };
    const targets = { $slice: [all, checked, SLICE + 1] };
    const found = await readByIds(messages, ids, (documents, ofDay) =>
      documents
        .aggregate<Pick<MessageDocument, '_id' | 'targets' | 'addedTargets'>>([
          { $match: { _id: { $in: ofDay }, ...UNERASED } },
          { $project: { targets, addedTargets: 1 } },
        ])
        .toArray(),
    );
    for (const { _id, targets: ids, addedTargets } of found) {
      const isLast = ids.length <= SLICE;
      const added = addedTargets && { addedTargets };
      slices.set(_id, { messageId: _id, webhookIds: ids.slice(0, SLICE), isLast, ...added });
    }
  }
  return slices;
}

/** The ids of the messages whose slice is delivered. Ids of deliveries are derived in short pieces of work. */
async function deliveredAmong(
  deliveries: Days['deliveries'],
  slices: Iterable<Slice>,
): Promise<Set<string>> {
  const complete = new Set<string>();
  for (const part of partsOf(slices)) {
    const ids = part.map(({ messageId, webhookIds }) =>
      webhookIds.map((webhookId) => deliveryIdOf(messageId, webhookId)),
    );
    const delivered = new Set(await readDelivered(deliveries, ids.flat()));
    part.forEach(({ messageId }, index) => {
      if (ids[index]?.every((id) => delivered.has(id))) complete.add(messageId);
    });
  }
  return complete;
}

function* partsOf(slices: Iterable<Slice>): Iterable<Slice[]> {
  let part: Slice[] = [];
  let size = 0;
  for (const slice of slices) {
    if (size + slice.webhookIds.length > MAX_IDS) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(slice);
    size += slice.webhookIds.length;
  }
  if (part.length > 0) yield part;
}

/** The result of a check. */
type Verdict =
  /** Everything is delivered. */
  | { what: 'erase' }
  /** There is nothing to erase, or nothing to remember until another delivery succeeds. */
  | { what: 'forget' }
  /** The first `checked` targets are delivered, and more follow. */
  | { what: 'go_on'; checked: number }
  /** One of the next targets is not delivered. */
  | { what: 'wait' };

function judge(
  { checked }: DueNote,
  slice: Slice | undefined,
  delivered: ReadonlySet<string>,
): Verdict {
  if (!slice || slice.webhookIds.length === 0) return { what: 'forget' };
  if (!delivered.has(slice.messageId)) return { what: checked === 0 ? 'forget' : 'wait' };
  return slice.isLast ? { what: 'erase' } : { what: 'go_on', checked: checked + SLICE };
}

/** A note that was written again meanwhile stays: its success may have come after the look. */
function updateOf({ _id, dueAt }: DueNote, verdict: Verdict): NoteWrite {
  const filter = { _id, dueAt };
  switch (verdict.what) {
    case 'erase':
    case 'forget':
      return { deleteOne: { filter } };
    // Behind the others whose time has come.
    case 'go_on':
      return {
        updateOne: { filter, update: [{ $set: { checked: verdict.checked, dueAt: '$$NOW' } }] },
      };
    // A delivered delivery stays delivered, so the next check begins there.
    case 'wait':
      return { updateOne: { filter, update: { $unset: { dueAt: '' } } } };
  }
}
