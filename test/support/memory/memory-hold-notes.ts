import type { HoldNotes, HoldPlace } from '@posthorn/platform/mongo/webhooks/holds.ts';
import { createMemoryNotes, type Sync } from './memory-notes.ts';

/** A note as it is stored. */
export interface MemoryHoldNote extends HoldPlace {
  touchedAtMs: number;
  dueAtMs: number;
  claim: string | null;
  ratePerSecond: number | null;
  isOpenEnded?: true;
}

/** The notes of holds in memory. */
export interface MemoryHoldNotes extends Sync<Omit<HoldNotes, 'touch' | 'hasAny' | 'oldestMs'>> {
  /** By what they are of. */
  all: Map<string, MemoryHoldNote>;
  /** Stores a note that is due then, or changes it: a process that works on it keeps it. */
  touch: (
    place: HoldPlace,
    touch: { atMs: number; dueAtMs: number; ratePerSecond?: number | null },
  ) => void;
}

export function createMemoryHoldNotes(): MemoryHoldNotes {
  const all = new Map<string, MemoryHoldNote>();
  const claimed = createMemoryNotes({
    all,
    change: (note, changes) => Object.assign(note, changes),
    toNote({ id, companyId, kind, touchedAtMs, ratePerSecond }) {
      return { id, companyId, kind, touchedAtMs, ratePerSecond };
    },
  });
  const touch: MemoryHoldNotes['touch'] = (place, { atMs, dueAtMs, ratePerSecond }) => {
    const { id } = place;
    const before = all.get(id);
    const claim = before?.claim ?? null;
    all.set(id, {
      ...place,
      touchedAtMs: atMs,
      dueAtMs: before && claim !== null ? before.dueAtMs : dueAtMs,
      claim,
      ratePerSecond: ratePerSecond === undefined ? (before?.ratePerSecond ?? null) : ratePerSecond,
    });
  };
  return {
    ...claimed,
    all,
    touch,
    expand({ companyId, kind, touchedAtMs: atMs, ratePerSecond }, ids, nowMs) {
      const missing = ids.filter((id) => (all.get(id)?.touchedAtMs ?? -1) < atMs);
      for (const id of missing) {
        const rate = kind !== 'company' && { ratePerSecond };
        touch({ id, companyId, kind: 'webhook' }, { atMs, dueAtMs: nowMs, ...rate });
      }
      return missing.length;
    },
    putBack(note, dueAtMs) {
      const isTouched = all.get(note.id)?.touchedAtMs !== note.touchedAtMs;
      return claimed.putBack(note, isTouched ? 0 : dueAtMs);
    },
    noteOpenEnded({ id, claim }) {
      const found = all.get(id);
      if (found?.claim === claim) found.isOpenEnded = true;
    },
    noteEnd({ id, claim }, atMs) {
      const found = all.get(id);
      if (found?.claim === claim) found.touchedAtMs = atMs;
    },
    remove({ id, claim, touchedAtMs }) {
      const found = all.get(id);
      return found?.claim === claim && found.touchedAtMs === touchedAtMs && all.delete(id);
    },
    rateOf: (id) => all.get(id)?.ratePerSecond ?? null,
  };
}
