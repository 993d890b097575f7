/** A message that waits in memory until Kafka has all of its records. */
export interface TrackedMessage {
  readonly id: string;
  readonly createdAtMs: number;
  isPublished: boolean;
}

/** Handed over when it was stored, or read back from the store later. */
export type Origin = 'direct' | 'readBack';

/** Reduces the published messages, in any order, to one id: the watermark. */
export interface WatermarkTracker {
  /** The ids of each origin must grow. */
  add: (origin: Origin, id: string, createdAtMs: number) => TrackedMessage;
  /**
   * Raises the watermark as far as everything up to it is published. Messages after `readToId` may
   * still have to be read back from the store; null when none have to be.
   */
  advance: (readToId: string | null) => void;
  /** Kafka has acknowledged every message up to this id. */
  watermark: () => string;
  /** When the oldest unpublished message was created. Null when there is none. */
  oldestAtMs: () => number | null;
  unpublished: () => number;
  /** True for a message that was added and is not published. */
  isUnpublished: (id: string) => boolean;
  usedBytes: () => number;
}

/** A message, and the id before it in its sequence. */
interface Placed extends TrackedMessage {
  readonly previousId: string;
}

/** The messages of one origin, in the order of their ids. */
interface Sequence {
  /** Begins with the oldest unpublished message. */
  messages: Placed[];
  /** The id that was added last. */
  lastId: string;
  /** At this many messages, those that are published are dropped from among the others. */
  compactAt: number;
}

/** An object, its ids and its place in the array. */
const MESSAGE_BYTES = 200;
const COMPACT_AT = 1_024;

/**
 * Messages are acknowledged out of order, because companies take turns. Each sequence drops what is published: at its
 * head at once, and behind an unpublished message when that is half of it. Otherwise it would grow by everything that
 * the gateway publishes while one company waits for minutes. `firstWatermark` sorts before every message that will be
 * added.
 */
export function createWatermarkTracker(firstWatermark: string): WatermarkTracker {
  const sequences: Record<Origin, Sequence> = {
    direct: { messages: [], lastId: '', compactAt: COMPACT_AT },
    readBack: { messages: [], lastId: '', compactAt: COMPACT_AT },
  };
  const both = Object.values(sequences);
  let watermark = firstWatermark;
  return {
    add(origin, id, createdAtMs) {
      const sequence = sequences[origin];
      const message = { id, createdAtMs, isPublished: false, previousId: sequence.lastId };
      sequence.messages.push(message);
      sequence.lastId = id;
      return message;
    },
    advance(readToId) {
      both.forEach(dropPublished);
      watermark = highestPublished(both, readToId, watermark);
    },
    watermark: () => watermark,
    oldestAtMs() {
      const heads = both.flatMap(({ messages }) => messages.slice(0, 1));
      return heads.length === 0 ? null : Math.min(...heads.map((head) => head.createdAtMs));
    },
    unpublished: () => both.reduce((sum, sequence) => sum + unpublishedOf(sequence), 0),
    isUnpublished: (id) => both.some(({ messages }) => find(messages, id)?.isPublished === false),
    usedBytes: () => both.reduce((sum, { messages }) => sum + messages.length, 0) * MESSAGE_BYTES,
  };
}

function dropPublished(sequence: Sequence): void {
  const { messages } = sequence;
  const firstUnpublished = messages.findIndex(({ isPublished }) => !isPublished);
  const count = firstUnpublished === -1 ? messages.length : firstUnpublished;
  if (count > 0) sequence.messages = messages.slice(count);
  if (sequence.messages.length < sequence.compactAt) return;
  sequence.messages = sequence.messages.filter(({ isPublished }) => !isPublished);
  sequence.compactAt = Math.max(COMPACT_AT, 2 * sequence.messages.length);
}

/** Everything of the sequence up to the returned id is published. */
function publishedTo({ messages: [head], lastId }: Sequence): string {
  return head ? head.previousId : lastId;
}

/** Returns the highest known id below every unpublished and every unread message, and not below `before`. */
function highestPublished(
  sequences: readonly Sequence[],
  readToId: string | null,
  before: string,
): string {
  const known = sequences.map(publishedTo);
  if (readToId !== null) known.push(readToId);
  const isBelowAll = (id: string): boolean =>
    (readToId === null || id <= readToId) &&
    sequences.every(({ messages: [head] }) => head === undefined || id < head.id);
  return known.filter(isBelowAll).reduce((highest, id) => (id > highest ? id : highest), before);
}

/** Bisects: while Kafka is away tens of thousands of messages wait. */
function find(messages: readonly Placed[], id: string): Placed | undefined {
  let [from, to] = [0, messages.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((messages[middle]?.id ?? '') < id) from = middle + 1;
    else to = middle;
  }
  const found = messages[from];
  return found?.id === id ? found : undefined;
}

function unpublishedOf({ messages }: Sequence): number {
  return messages.reduce((sum, { isPublished }) => sum + (isPublished ? 0 : 1), 0);
}
