import type { mongo } from 'mongoose';
import type { Claimed, WorkNote, WorkNotes } from '../work/claimed-work.ts';

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
  /** Which of the documents are notes; of several filters each needs an index that ends with `dueAt`. */
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
  return {
    async claim({ claim, nowMs, untilMs, exceptCompanyIds }) {
      for (const kind of kinds) {
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

/** What may be claimed by a process that leaves these companies out. */
export function dueFor(
  nowMs: number,
  exceptCompanyIds: readonly string[],
): mongo.Filter<WorkDocument> {
  return {
    dueAt: { $not: { $gt: new Date(nowMs) } },
    ...(exceptCompanyIds.length > 0 && { companyId: { $nin: [...exceptCompanyIds] } }),
  };
}
