import type { WorkNote, WorkNotes } from '@posthorn/platform/mongo/work-notes.ts';

/** What a note has besides in memory. One without a time is due at once. */
export interface StoredNote extends WorkNote {
  dueAtMs?: number | null;
  claim?: string | null;
}

/** Each call is done when it returns. */
export type Sync<Store> = {
  [Name in keyof Store]: Store[Name] extends (...given: infer Given) => Promise<infer Result>
    ? (...given: Given) => Result
    : never;
};

interface NotesIn<Stored extends StoredNote, Note extends WorkNote> {
  all: ReadonlyMap<string, Stored>;
  /** Stores the changed note. */
  change: (note: Stored, changes: Required<Pick<StoredNote, 'dueAtMs' | 'claim'>>) => void;
  isNote?: (stored: Stored) => boolean;
  toNote: (stored: Stored) => Note;
}

/** The notes of work in memory, as createWorkNotes has them in MongoDB. */
export function createMemoryNotes<Stored extends StoredNote, Note extends WorkNote>({
  all,
  change,
  isNote = () => true,
  toNote,
}: NotesIn<Stored, Note>): Sync<WorkNotes<Note>> {
  const dueOf = ({ dueAtMs }: Stored): number => dueAtMs ?? -Infinity;
  return {
    claim({ claim, nowMs, untilMs, exceptCompanyIds }) {
      const [due] = [...all.values()]
        .filter((each) => isNote(each) && dueOf(each) <= nowMs)
        .filter(({ companyId }) => !exceptCompanyIds.includes(companyId))
        .sort((a, b) => dueOf(a) - dueOf(b));
      if (!due) return null;
      change(due, { claim, dueAtMs: untilMs });
      return { ...toNote(all.get(due.id) ?? due), claim };
    },
    renew({ id, claim }, untilMs) {
      const found = all.get(id);
      if (!found || found.claim !== claim) return false;
      change(found, { claim, dueAtMs: untilMs });
      return true;
    },
    putBack({ id, claim }, dueAtMs) {
      const found = all.get(id);
      if (!found || found.claim !== claim) return null;
      change(found, { claim: null, dueAtMs });
      return dueAtMs;
    },
  };
}

/** The same with promises. */
export function asyncNotes<Note extends WorkNote>(notes: Sync<WorkNotes<Note>>): WorkNotes<Note> {
  return {
    claim: (claim) => Promise.resolve(notes.claim(claim)),
    renew: (note, untilMs) => Promise.resolve(notes.renew(note, untilMs)),
    putBack: (note, dueAtMs) => Promise.resolve(notes.putBack(note, dueAtMs)),
  };
}
