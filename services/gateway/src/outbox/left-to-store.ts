import type { Message } from '@posthorn/domain/message.ts';

/** Companies whose messages do not fit into memory: they lie in the store and are read back in order. */
export interface LeftToStore {
  /** From the first that is left on, all messages of its company are, until everything was read. */
  has: (companyId: string) => boolean;
  /** `before` is the id that was handed over before this message. */
  leave: (message: Message, before: string) => void;
  /** Whether a message that was read is one of those that were left. */
  isLeft: (message: Pick<Message, 'companyId' | 'id'>) => boolean;
  /** Everything up to this id is in memory or published; null when nothing is left. */
  readTo: () => string | null;
  /** The last message that was left; '' before any was. */
  lastId: () => string;
  /** Everything up to this id was read; `createdAtMs` is the time of the message that was read last. */
  read: (upTo: string, createdAtMs: number | undefined) => void;
  companies: () => Iterable<string>;
  /** Not later than the oldest that is left was accepted; null when nothing is. */
  oldestAtMs: () => number | null;
  /** Messages that a page of so many bytes holds, going by those that were left; 1 to 200. */
  pageLimit: (pageBytes: number) => number;
}

const MAX_PAGE = 200;

export function createLeftToStore(bytesOf: (message: Message) => number): LeftToStore {
  /** Company → the first id that was left. */
  const firstOf = new Map<string, string>();
  let [readTo, lastId, oldestAtMs] = ['', '', 0];
  let [bytes, count] = [0, 0];
  return {
    has: (companyId) => firstOf.has(companyId),
    leave(message, before) {
      if (firstOf.size === 0)
        [readTo, oldestAtMs, bytes, count] = [before, message.createdAtMs, 0, 0];
      if (!firstOf.has(message.companyId)) firstOf.set(message.companyId, message.id);
      lastId = message.id;
      bytes += bytesOf(message);
      count += 1;
    },
    isLeft({ companyId, id }) {
      const first = firstOf.get(companyId);
      return first !== undefined && id >= first;
    },
    readTo: () => (firstOf.size === 0 ? null : readTo),
    lastId: () => lastId,
    read(upTo, createdAtMs) {
      readTo = upTo;
      oldestAtMs = createdAtMs ?? oldestAtMs;
      if (readTo >= lastId) firstOf.clear();
    },
    companies: () => firstOf.keys(),
    oldestAtMs: () => (firstOf.size === 0 ? null : oldestAtMs),
    pageLimit(pageBytes) {
      const fitting = Math.floor((pageBytes * count) / Math.max(1, bytes));
      return Math.min(MAX_PAGE, Math.max(1, fitting));
    },
  };
}
