/** A message that waits in memory until Kafka has all of it. */
export interface LedgerEntry {
  readonly id: string;
  readonly createdAtMs: number;
  isDone: boolean;
}

/** Handed over when it was stored, or read back from the store later. */
export type LedgerLine = 'direct' | 'readBack';

/** What was published, in whatever order, as one id: the watermark. */
export interface PublishLedger {
  /** In each line the ids must grow. */
  add: (line: LedgerLine, id: string, createdAtMs: number) => LedgerEntry;
  /**
   * Raises the watermark as far as everything up to it is done. `readTo`: what follows this id may
   * lie in the store unread; null when nothing does.
   */
  raise: (readTo: string | null) => void;
  /** Every message up to this id was acknowledged by Kafka. */
  watermark: () => string;
  /** Of the oldest that is not done; null when there is none. */
  oldestAtMs: () => number | null;
  /** Messages that are not done. */
  unfinished: () => number;
  usedBytes: () => number;
}

interface Line {
  entries: LedgerEntry[];
  /** Everything of this line up to this id is done. */
  doneTo: string;
}

/** An object, its id and its place. */
const ENTRY_BYTES = 160;

/**
 * Messages are acknowledged out of order, because companies take turns. A line drops what is done at
 * its head, so that only what lies behind an unfinished message is kept.
 */
export function createPublishLedger(): PublishLedger {
  const lines: Record<LedgerLine, Line> = {
    direct: { entries: [], doneTo: '' },
    readBack: { entries: [], doneTo: '' },
  };
  const both = Object.values(lines);
  let watermark = '';
  return {
    add(line, id, createdAtMs) {
      const entry = { id, createdAtMs, isDone: false };
      lines[line].entries.push(entry);
      return entry;
    },
    raise(readTo) {
      both.forEach(dropDone);
      watermark = highestDone(both, readTo, watermark);
    },
    watermark: () => watermark,
    oldestAtMs() {
      const heads = both.flatMap(({ entries }) => entries.slice(0, 1));
      return heads.length === 0 ? null : Math.min(...heads.map((head) => head.createdAtMs));
    },
    unfinished: () => both.reduce((sum, line) => sum + unfinishedOf(line), 0),
    usedBytes: () => both.reduce((sum, { entries }) => sum + entries.length, 0) * ENTRY_BYTES,
  };
}

function dropDone(line: Line): void {
  const firstOpen = line.entries.findIndex(({ isDone }) => !isDone);
  const count = firstOpen === -1 ? line.entries.length : firstOpen;
  if (count === 0) return;
  line.doneTo = line.entries[count - 1]?.id ?? line.doneTo;
  line.entries = line.entries.slice(count);
}

/** The highest id known that no unfinished and no unread message comes before; never a lower one than before. */
function highestDone(lines: readonly Line[], readTo: string | null, before: string): string {
  const known = lines.map(({ doneTo }) => doneTo);
  if (readTo !== null) known.push(readTo);
  const isBelowAll = (id: string): boolean =>
    (readTo === null || id <= readTo) &&
    lines.every(({ entries: [head] }) => head === undefined || id < head.id);
  return known.filter(isBelowAll).reduce((highest, id) => (id > highest ? id : highest), before);
}

function unfinishedOf({ entries }: Line): number {
  return entries.reduce((sum, { isDone }) => sum + (isDone ? 0 : 1), 0);
}
