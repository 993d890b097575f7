import { ImpossibleError } from '@posthorn/domain/required.ts';
import { firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
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

export interface CheckPosition {
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

export function createMessageChecks(db: mongo.Db): MessageChecks {
  const checks = collection(db, 'messageChecks');
  const messages = collection(db, 'messages');
  const deliveries = collection(db, 'deliveries');

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
      const found = deliveries
        .find({ _id: { $in: [...ids] } })
        .project<{ _id: string }>({ _id: 1 });
      return new Set((await found.toArray()).map(({ _id }) => _id));
    },
    async retentionMs() {
      const kept = (await deliveries.indexes()).find(({ key }) => key.createdAt === 1);
      return (kept?.expireAfterSeconds ?? Infinity) * 1_000;
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
  messages: mongo.Collection<MessageDocument>,
  { afterId, beforeMs, maxMessages, maxTargets }: CheckSpan,
): AsyncGenerator<CheckedMessage[]> {
  const span = { _id: { $gt: afterId, $lt: firstIdAt('msg', beforeMs) } };
  // A message that a rollback takes back must not get a delivery.
  const found = messages
    .find(span, { readConcern: { level: 'majority' } })
    .project<MessageDocument>(WITHOUT_PAYLOAD)
    .sort({ _id: 1 })
    .batchSize(BATCH_SIZE);
  let page: CheckedMessage[] = [];
  let targets = 0;
  for await (const document of found) {
    const message = toMessage(document);
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
