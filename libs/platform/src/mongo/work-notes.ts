import type { mongo } from 'mongoose';

/** Work to be done, stored before it is begun. Any process may do it. */
export interface WorkNote {
  id: string;
  companyId: string;
}

/** A note that this process works on until another process claims it. `claim` names the claim. */
export type Claimed<Note extends WorkNote> = Note & { claim: string };

/** Times are in milliseconds since 1970. */
export interface NoteClaim {
  claim: string;
  nowMs: number;
  /** Until then no other process claims the note. */
  untilMs: number;
  /** Companies whose notes are left to later claims, or to other processes. */
  exceptCompanyIds: readonly string[];
}

export interface WorkNotes<Note extends WorkNote> {
  /** Claims the note that has been due for the longest; null when none is due. */
  claim: (claim: NoteClaim) => Promise<Claimed<Note> | null>;
  /** Keeps the claim until then. Returns false when another process has the note, or it has ended. */
  renew: (note: Claimed<Note>, untilMs: number) => Promise<boolean>;
  /** Ends the claim. Returns when the note is due again: at that time, or sooner. Null when `renew` would return false. */
  putBack: (note: Claimed<Note>, dueAtMs: number) => Promise<number | null>;
}

/** The clocks of the processes that write and claim notes may differ by some milliseconds. */
const CLOCKS_DIFFER_MS = 1_000;

/** When a note is due that is to be worked on now. */
export const dueNowMs = (nowMs: number): number => nowMs - CLOCKS_DIFFER_MS;

/** An expression that is true while a process has claimed the document: that learns when it was changed. */
export const IS_CLAIMED = { $gt: ['$claim', null] };

/** The fields by which a document is a note of work. */
export interface WorkDocument {
  _id: string;
  companyId: string;
  /** When it is to be worked on. One without a time is due at once. */
  dueAt?: Date;
  /** Names the claim of the process that works on it. */
  claim?: string;
}

interface NotesIn<Document extends WorkDocument, Note extends WorkNote> {
  documents: mongo.Collection<Document>;
  /** The filter of the documents that are notes; of several, each needs an index that ends with `dueAt`. */
  filters?: readonly mongo.Filter<Document>[];
  toNote: (document: Document) => Note;
}

/** The notes in a collection (work/claimed-work.ts). */
export function createWorkNotes<Document extends WorkDocument, Note extends WorkNote>({
  documents,
  filters = [{}],
  toNote,
}: NotesIn<Document, Note>): WorkNotes<Note> {
  const notes = documents as unknown as mongo.Collection<WorkDocument>;
  const kinds = filters as readonly mongo.Filter<WorkDocument>[];
  const own = ({ id: _id, claim }: Claimed<Note>) => ({ _id, claim });
  let first = -1;
  return {
    async claim({ claim, nowMs, untilMs, exceptCompanyIds }) {
      // Each kind comes first in its turn: one that is always due must not keep another one waiting.
      first = (first + 1) % kinds.length;
      for (const kind of [...kinds.slice(first), ...kinds.slice(0, first)]) {
        const found = await notes.findOneAndUpdate(
          { ...kind, ...dueFor(nowMs, exceptCompanyIds) },
          { $set: { claim, dueAt: new Date(untilMs) } },
          { sort: { dueAt: 1 }, returnDocument: 'after' },
        );
        if (found) return { ...toNote(found as Document), claim };
      }
      return null;
    },
    async renew(note, untilMs) {
      const update = { $set: { dueAt: new Date(untilMs) } };
      return (await notes.updateOne(own(note), update)).matchedCount === 1;
    },
    async putBack(note, dueAtMs) {
      const update = { $set: { dueAt: new Date(dueAtMs) }, $unset: { claim: '' as const } };
      return (await notes.updateOne(own(note), update)).matchedCount === 1 ? dueAtMs : null;
    },
  };
}

/** The notes that a process may claim which leaves these companies out. */
export function dueFor(
  nowMs: number,
  exceptCompanyIds: readonly string[],
): mongo.Filter<WorkDocument> {
  return {
    dueAt: { $not: { $gt: new Date(nowMs) } },
    ...(exceptCompanyIds.length > 0 && { companyId: { $nin: [...exceptCompanyIds] } }),
  };
}
