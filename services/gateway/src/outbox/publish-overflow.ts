import type { Message } from '@posthorn/domain/message/message.ts';

/**
 * Companies whose messages do not fit into the publish queue. Their messages are not kept in memory
 * but read back from the store, in the order of their ids.
 */
export interface PublishOverflow {
  /** From its first message that did not fit until all were read back, every message of a company overflows. */
  hasCompany: (companyId: string) => boolean;
  /** `previousId` is the id that was handed over before this message. */
  add: (message: Message, previousId: string) => void;
  /** Whether a message that was read back is one of those that overflowed. */
  hasMessage: (message: Pick<Message, 'companyId' | 'id'>) => boolean;
  /** Everything up to this id is in memory or published. Null when nothing is left to read. */
  readToId: () => string | null;
  /** The last message that was added; '' before any was. */
  lastId: () => string;
  /** Records that everything up to `id` was read; `createdAtMs` is that of the message read last. */
  markRead: (id: string, createdAtMs: number | undefined) => void;
  /** Keeps the messages that are added from now on, up to `maxBytes` of them. */
  rememberArrivals: (maxBytes: number) => void;
  /**
   * Returns the messages that were added since then, and counts them as read, when nothing else is
   * left to read. Returns none when they were more than `maxBytes`: they have to be read back.
   */
  takeArrivals: () => readonly Message[];
  companies: () => Iterable<string>;
  /** A lower bound of the creation of the oldest message left to read. Null when nothing is. */
  oldestAtMs: () => number | null;
  /** How many messages to read so that they take about `pageBytes`, by their mean size; 1 to 200. */
  pageLimit: (pageBytes: number) => number;
}

const MAX_PAGE = 200;

export function createPublishOverflow(bytesOf: (message: Message) => number): PublishOverflow {
  /** Company → its first id that did not fit. */
  const firstOf = new Map<string, string>();
  let [readToId, lastId, oldestAtMs] = ['', '', 0];
  let [bytes, count] = [0, 0];
  let arrivals = createArrivals(0);

  function markRead(id: string, createdAtMs: number | undefined): void {
    readToId = id;
    oldestAtMs = createdAtMs ?? oldestAtMs;
    if (readToId >= lastId) firstOf.clear();
  }

  return {
    hasCompany: (companyId) => firstOf.has(companyId),
    add(message, previousId) {
      if (firstOf.size === 0)
        [readToId, oldestAtMs, bytes, count] = [previousId, message.createdAtMs, 0, 0];
      if (!firstOf.has(message.companyId)) firstOf.set(message.companyId, message.id);
      lastId = message.id;
      bytes += bytesOf(message);
      count += 1;
      arrivals.add(message, bytesOf(message));
    },
    hasMessage({ companyId, id }) {
      const first = firstOf.get(companyId);
      return first !== undefined && id >= first;
    },
    readToId: () => (firstOf.size === 0 ? null : readToId),
    lastId: () => lastId,
    markRead,
    rememberArrivals: (maxBytes) => {
      arrivals = createArrivals(maxBytes);
    },
    takeArrivals() {
      const arrived = arrivals.all();
      arrivals = createArrivals(0);
      if (arrived.length > 0) markRead(lastId, arrived.at(-1)?.createdAtMs);
      return arrived;
    },
    companies: () => firstOf.keys(),
    oldestAtMs: () => (firstOf.size === 0 ? null : oldestAtMs),
    pageLimit(pageBytes) {
      const fitting = Math.floor((pageBytes * count) / Math.max(1, bytes));
      return Math.min(MAX_PAGE, Math.max(1, fitting));
    },
  };
}

interface Arrivals {
  add: (message: Message, bytes: number) => void;
  /** Every message that was added; none when one did not fit. */
  all: () => readonly Message[];
}

function createArrivals(maxBytes: number): Arrivals {
  let messages: Message[] = [];
  let leftBytes = maxBytes;
  return {
    add(message, bytes) {
      leftBytes -= bytes;
      if (leftBytes >= 0) messages.push(message);
      else messages = [];
    },
    all: () => messages,
  };
}
