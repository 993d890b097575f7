import type { HoldNote, HoldNotes, HoldPlace } from '@posthorn/platform/mongo/webhooks/holds.ts';

/** A note as it is stored. */
export interface MemoryHoldNote extends HoldPlace {
  touchedAtMs: number;
  dueAtMs: number;
  claim: string | null;
  ratePerSecond: number | null;
  isOpenEnded?: true;
}

type Shown = 'expand' | 'claim' | 'take' | 'putBack' | 'remove';

type Sync<Store> = {
  [Name in keyof Store]: Store[Name] extends (...given: infer Given) => Promise<infer Result>
    ? (...given: Given) => Result
    : never;
};

/** The notes of holds in memory. Each call is done when it returns. */
export interface MemoryHoldNotes extends Sync<Pick<HoldNotes, Shown>> {
  /** By what they are of. */
  all: Map<string, MemoryHoldNote>;
}

export function createMemoryHoldNotes(): MemoryHoldNotes {
  const all = new Map<string, MemoryHoldNote>();
  const claimOne = (note: MemoryHoldNote | undefined, claim: string, untilMs: number) => {
    if (!note) return null;
    Object.assign(note, { claim, dueAtMs: untilMs });
    const { id, companyId, kind, touchedAtMs, ratePerSecond } = note;
    return { id, companyId, kind, touchedAtMs, ratePerSecond, claim };
  };
  const own = ({ id, claim }: HoldNote): MemoryHoldNote | null => {
    const found = all.get(id);
    return found?.claim === claim ? found : null;
  };
  return {
    all,
    expand({ companyId, kind, touchedAtMs, ratePerSecond }, ids, nowMs) {
      const missing = ids.filter((id) => (all.get(id)?.touchedAtMs ?? -1) < touchedAtMs);
      for (const id of missing) {
        const rate = kind === 'company' ? (all.get(id)?.ratePerSecond ?? null) : ratePerSecond;
        const note = { id, companyId, kind: 'webhook', touchedAtMs, dueAtMs: nowMs } as const;
        all.set(id, { ...note, claim: null, ratePerSecond: rate });
      }
      return missing.length;
    },
    claim({ claim, nowMs, untilMs, exceptCompanyIds }) {
      const due = [...all.values()]
        .filter((each) => each.dueAtMs <= nowMs && !exceptCompanyIds.includes(each.companyId))
        .sort((a, b) => a.dueAtMs - b.dueAtMs);
      return claimOne(due[0], claim, untilMs);
    },
    take: (id, { claim, untilMs }) => claimOne(all.get(id), claim, untilMs),
    putBack(note, dueAtMs, { keepsClaim = false, ...changes } = {}) {
      const found = own(note);
      const claim = keepsClaim ? note.claim : null;
      if (found) Object.assign(found, { ...changes, dueAtMs, claim });
      return found !== null;
    },
    remove(note) {
      if (own(note)) all.delete(note.id);
    },
  };
}
