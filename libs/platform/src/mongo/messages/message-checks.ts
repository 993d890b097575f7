import { firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { Database, Days } from '../days/days.ts';
import { readLayout } from '../days/layout.ts';
import { databaseClockMs } from '../database-time.ts';
import type { MessageCheckDocument, MessageDocument } from '../documents.ts';
import { recordedAmong } from './deliveries.ts';
import { toMessage } from './messages.ts';

/** A message without its payload. */
export type CheckedMessage = Pick<
  Message,
  | 'id'
  | 'companyId'
  | 'appId'
  | 'targets'
  | 'disabledTargets'
  | 'createdAtMs'
  | 'erasesPayload'
  | 'omitsResponses'
  | 'expiresAtMs'
  | 'removeAtMs'
  | 'deliverAtMs'
>;

/**
 * Messages are checked in so many shares, each with a position of its own, so that several processes check at once. At
 * 17,000 messages a second, one process is enough for a third of 50,000 messages a second.
 */
export const CHECK_SHARES = 16;
/** Short, so that the messages of five minutes, from one sweep to the next, are in every share. */
const SLOT_MS = 10_000;

const slotOf = (ms: number): number => Math.floor(ms / SLOT_MS);

/**
 * Returns the share of a message, from 0 to CHECK_SHARES - 1. Shares take turns by the time of the id: so each is a few
 * ranges of the index by id. No index finds the messages of some companies of all.
 */
export function shareOf(messageId: string): number {
  return slotOf(timeMsOf(messageId)) % CHECK_SHARES;
}

/** Returns when the next slot of a share begins that does so at `ms` or later. */
function nextSlotMs(share: number, ms: number): number {
  const slot = Math.ceil(ms / SLOT_MS);
  const ahead = (share - (slot % CHECK_SHARES) + CHECK_SHARES) % CHECK_SHARES;
  return (slot + ahead) * SLOT_MS;
}

interface CheckPositions {
  /** The database's time, in milliseconds since 1970. */
  nowMs: number;
  /** Before when all messages of each share are checked, in milliseconds since 1970; null when none was. */
  checkedToMs: (number | null)[];
}

/**
 * Returns before when the sweep of stuck deliveries has recorded every delivery of the messages, in milliseconds since
 * 1970; 0 when it has not run.
 */
export function allCheckedToMs({
  checkedToMs: positions,
}: Pick<CheckPositions, 'checkedToMs'>): number {
  const known = positions.filter((ms) => ms !== null);
  return known.length === positions.length ? Math.min(...known) : 0;
}

export interface CheckSpan {
  share: number;
  afterId: string;
  /** Milliseconds since 1970. */
  beforeMs: number;
  maxMessages: number;
  /** Bounds a page by its targets too, because a message may have thousands. */
  maxTargets: number;
}

export interface CheckedPage {
  messages: CheckedMessage[];
  /** No other message of the share is up to this id. */
  readTo: string;
}

/** Lets the sweep check each message once, in the order of their ids: are all its deliveries recorded? */
export interface MessageChecks {
  positions: () => Promise<CheckPositions>;
  /** Returns the id up to which the messages of a share are checked; '' when none was. */
  checkedTo: (share: number) => Promise<string>;
  /**
   * The messages of a share after `afterId` that were made before `beforeMs`, oldest first. Each page has not more than
   * `maxTargets` targets unless its only message has. Only the last one may be empty.
   */
  pagesOf: (span: CheckSpan) => AsyncIterable<CheckedPage>;
  /** The ids among these that are recorded. */
  recordedAmong: (deliveryIds: readonly string[]) => Promise<Set<string>>;
  /** How long deliveries are kept, in milliseconds from the creation of their message. */
  retentionMs: () => Promise<number>;
  /** Stores the position of a share, which `checkedTo` returns. */
  markChecked: (share: number, messageId: string) => Promise<void>;
  /**
   * Stores that no message of a share before `atMs` is left. The position does not move by that: after a jump of
   * the database's clock it would be ahead of messages that are still to come.
   */
  markComplete: (share: number, atMs: number) => Promise<void>;
}

/** Read from the server at once. It sends 16 MiB at most, however many targets they have. */
const BATCH_SIZE = 1_000;
const positionIdOf = (share: number): string => `messages/${share}`;
const WITHOUT_PAYLOAD = {
  companyId: 1,
  appId: 1,
  targets: 1,
  disabledTargets: 1,
  createdAt: 1,
  erasesPayload: 1,
  omitsResponses: 1,
  expiresAt: 1,
  removeAt: 1,
  deliverAt: 1,
};

export function createMessageChecks(db: Database): MessageChecks {
  const checks = collection(db, 'messageChecks');
  const { messages, deliveries } = db.days;
  const mark = (share: number, fields: Partial<MessageCheckDocument>) =>
    checks.updateOne({ _id: positionIdOf(share) }, { $set: fields }, { upsert: true });

  return {
    async positions() {
      const nowMs = await databaseClockMs(db);
      const shares = Array.from({ length: CHECK_SHARES }, (_, share) => positionIdOf(share));
      const found = await checks.find({ _id: { $in: shares } }).toArray();
      const stored = new Map(found.map((each) => [each._id, each]));
      return { nowMs, checkedToMs: shares.map((id) => checkedToMs(stored.get(id))) };
    },
    async checkedTo(share) {
      return (await checks.findOne({ _id: positionIdOf(share) }))?.checkedTo ?? '';
    },
    pagesOf: (span) => readPages(messages, span),
    recordedAmong: (ids) => recordedAmong({ deliveries }, ids),
    async retentionMs() {
      return (await readLayout(db))?.retentionMs ?? Infinity;
    },
    async markChecked(share, messageId) {
      await mark(share, { checkedTo: messageId });
    },
    async markComplete(share, atMs) {
      await mark(share, { completeTo: new Date(atMs) });
    },
  };
}

function checkedToMs(stored: MessageCheckDocument | undefined): number | null {
  const { checkedTo = '', completeTo } = stored ?? {};
  const known = [completeTo?.getTime() ?? 0, checkedTo === '' ? 0 : timeMsOf(checkedTo)];
  return Math.max(...known) || null;
}

async function* readPages(
  messages: Days['messages'],
  { maxMessages, maxTargets, ...span }: CheckSpan,
): AsyncGenerator<CheckedPage> {
  let page: CheckedMessage[] = [];
  let targets = 0;
  let readTo = span.afterId;
  for await (const { id, message } of readShare(messages, span)) {
    targets += message?.targets.length ?? 0;
    const isFull = page.length === maxMessages || (page.length > 0 && targets > maxTargets);
    if (message && isFull) {
      yield { messages: page, readTo };
      page = [];
      targets = message.targets.length;
    }
    readTo = id;
    if (message) page.push(message);
  }
  if (readTo !== span.afterId) yield { messages: page, readTo };
}

type ShareSpan = Pick<CheckSpan, 'share' | 'afterId' | 'beforeMs'>;

/** Yields the messages of a share, and the ids of those of others at which it found that none of its own is before. */
async function* readShare(
  messages: Days['messages'],
  { share, afterId, beforeMs }: ShareSpan,
): AsyncGenerator<{ id: string; message: CheckedMessage | null }> {
  const beforeId = firstIdAt('msg', beforeMs);
  let from = afterId;
  for (const documents of messages.within({ fromId: afterId, beforeId })) {
    for (;;) {
      const id = await firstBetween(documents, from, beforeId);
      if (id === null) break;
      if (shareOf(id) === share) {
        const endMs = (slotOf(timeMsOf(id)) + 1) * SLOT_MS;
        const endId = firstIdAt('msg', Math.min(endMs, beforeMs));
        for await (const message of readBetween(documents, from, endId)) {
          yield { id: message.id, message };
        }
        from = firstIdAt('msg', nextSlotMs(share, endMs));
      } else {
        yield { id, message: null };
        from = firstIdAt('msg', nextSlotMs(share, timeMsOf(id)));
      }
    }
  }
}

/** A message that a rollback takes back must not get a delivery. */
const COMMITTED = { readConcern: { level: 'majority' } } as const;

/** Returns the first id after `afterId` and before `beforeId`. Reads the index only. */
async function firstBetween(
  documents: mongo.Collection<MessageDocument>,
  afterId: string,
  beforeId: string,
): Promise<string | null> {
  const first = documents.find({ _id: { $gt: afterId, $lt: beforeId } }, COMMITTED);
  const [found] = await first
    .project<Pick<MessageDocument, '_id'>>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(1)
    .toArray();
  return found?._id ?? null;
}

async function* readBetween(
  documents: mongo.Collection<MessageDocument>,
  afterId: string,
  beforeId: string,
): AsyncGenerator<CheckedMessage> {
  const found = documents
    .find({ _id: { $gt: afterId, $lt: beforeId } }, COMMITTED)
    .project<MessageDocument>(WITHOUT_PAYLOAD)
    .sort({ _id: 1 })
    .batchSize(BATCH_SIZE);
  for await (const document of found) yield toMessage(document);
}
