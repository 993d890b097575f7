import { ImpossibleError } from '@posthorn/domain/required.ts';
import { firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import { collection } from '../collections.ts';
import type { Database, Days } from '../days/days.ts';
import { readByIds } from '../days/read-days.ts';
import { readLayout } from '../days/layout.ts';
import type { MessageDocument } from '../documents.ts';
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
>;

interface CheckPosition {
  /** The database's time, in milliseconds since 1970. */
  nowMs: number;
  /** Id of the last message that was checked; '' when none was. */
  checkedTo: string;
}

export interface CheckSpan {
  afterId: string;
  /** Milliseconds since 1970. */
  beforeMs: number;
  maxMessages: number;
  /** Bounds a page by its targets too, because a message may have thousands. */
  maxTargets: number;
}

/** Lets the sweep check each message once, in the order of their ids: are all its deliveries recorded? */
export interface MessageChecks {
  begin: () => Promise<CheckPosition>;
  /** Returns before when, in milliseconds since 1970, all messages are checked; null when none was. */
  checkedToMs: () => Promise<number | null>;
  /**
   * The messages after `afterId` that were made before `beforeMs`, oldest first. Each page has at least
   * one message, and not more than `maxTargets` targets unless its only message has.
   */
  pagesOf: (span: CheckSpan) => AsyncIterable<CheckedMessage[]>;
  /** The ids among these that are recorded. */
  recordedAmong: (deliveryIds: readonly string[]) => Promise<Set<string>>;
  /** How long deliveries are kept, in milliseconds from the creation of their message. */
  retentionMs: () => Promise<number>;
  /** Stores the position. The next `begin` returns it. */
  markChecked: (messageId: string) => Promise<void>;
  /**
   * Stores that no message before `atMs` is left. The position does not move by that: after a jump of
   * the database's clock it would be ahead of messages that are still to come.
   */
  markComplete: (atMs: number) => Promise<void>;
}

/** Read from the server at once. It sends 16 MiB at most, however many targets they have. */
const BATCH_SIZE = 1_000;
const POSITION = { _id: 'messages' } as const;
const WITHOUT_PAYLOAD = {
  companyId: 1,
  appId: 1,
  targets: 1,
  disabledTargets: 1,
  createdAt: 1,
  erasesPayload: 1,
  omitsResponses: 1,
};

export function createMessageChecks(db: Database): MessageChecks {
  const checks = collection(db, 'messageChecks');
  const { messages, deliveries } = db.days;

  return {
    async begin() {
      const position = await checks.findOneAndUpdate(
        POSITION,
        [{ $set: { begunAt: '$$NOW', checkedTo: { $ifNull: ['$checkedTo', ''] } } }],
        { upsert: true, returnDocument: 'after' },
      );
      if (!position) {
        throw new ImpossibleError('MongoDB did not return the position of the message checks');
      }
      return { nowMs: position.begunAt.getTime(), checkedTo: position.checkedTo };
    },
    async checkedToMs() {
      const { checkedTo = '', completeTo } = (await checks.findOne(POSITION)) ?? {};
      const known = [completeTo?.getTime() ?? 0, checkedTo === '' ? 0 : timeMsOf(checkedTo)];
      return Math.max(...known) || null;
    },
    pagesOf: (span) => readPages(messages, span),
    async recordedAmong(ids) {
      // With the ids alone the server reads the index and no documents.
      const found = await readByIds(deliveries, ids, (documents, ofDay) =>
        documents
          .find({ _id: { $in: ofDay } })
          .project<{ _id: string }>({ _id: 1 })
          .toArray(),
      );
      return new Set(found.map(({ _id }) => _id));
    },
    async retentionMs() {
      return (await readLayout(db))?.retentionMs ?? Infinity;
    },
    async markChecked(messageId) {
      await checks.updateOne(POSITION, { $set: { checkedTo: messageId } });
    },
    async markComplete(atMs) {
      await checks.updateOne(POSITION, { $set: { completeTo: new Date(atMs) } });
    },
  };
}

async function* readPages(
  messages: Days['messages'],
  { maxMessages, maxTargets, ...span }: CheckSpan,
): AsyncGenerator<CheckedMessage[]> {
  let page: CheckedMessage[] = [];
  let targets = 0;
  for await (const message of readSpan(messages, span)) {
    targets += message.targets.length;
    if (page.length === maxMessages || (page.length > 0 && targets > maxTargets)) {
      yield page;
      page = [];
      targets = message.targets.length;
    }
    page.push(message);
  }
  if (page.length > 0) yield page;
}

async function* readSpan(
  messages: Days['messages'],
  { afterId, beforeMs }: Pick<CheckSpan, 'afterId' | 'beforeMs'>,
): AsyncGenerator<CheckedMessage> {
  const beforeId = firstIdAt('msg', beforeMs);
  for (const documents of messages.within({ fromId: afterId, beforeId })) {
    // A message that a rollback takes back must not get a delivery.
    const found = documents
      .find({ _id: { $gt: afterId, $lt: beforeId } }, { readConcern: { level: 'majority' } })
      .project<MessageDocument>(WITHOUT_PAYLOAD)
      .sort({ _id: 1 })
      .batchSize(BATCH_SIZE);
    for await (const document of found) yield toMessage(document);
  }
}
