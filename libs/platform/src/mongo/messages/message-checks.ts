import { firstIdAt } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { MessageDocument } from '../documents.ts';
import { toMessage } from './messages.ts';

/** A message without its payload. */
export type CheckedMessage = Pick<
  Message,
  'id' | 'companyId' | 'appId' | 'targets' | 'disabledTargets' | 'createdAtMs'
>;

export interface CheckPosition {
  /** The database's time, in milliseconds since 1970. */
  nowMs: number;
  /** Id of the last message that was checked; '' when none was. */
  checkedTo: string;
}

/** Lets the sweep check each message once, in the order of their ids: are all its deliveries recorded? */
export interface MessageChecks {
  begin: () => Promise<CheckPosition>;
  /** Messages after `afterId` that were made before `beforeMs` (since 1970), oldest first. */
  pageOf: (page: { afterId: string; beforeMs: number; limit: number }) => Promise<CheckedMessage[]>;
  /** The ids among these that are recorded. */
  recordedAmong: (deliveryIds: readonly string[]) => Promise<Set<string>>;
  /** How long deliveries are kept, in milliseconds from the creation of their message. */
  retentionMs: () => Promise<number>;
  /** Stores the position. The next `begin` returns it. */
  markChecked: (messageId: string) => Promise<void>;
}

const POSITION = { _id: 'messages' } as const;
const WITHOUT_PAYLOAD = { companyId: 1, appId: 1, targets: 1, disabledTargets: 1, createdAt: 1 };

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
      if (!position) throw new Error('MongoDB did not return the position of the message checks');
      return { nowMs: position.begunAt.getTime(), checkedTo: position.checkedTo };
    },
    async pageOf({ afterId, beforeMs, limit }) {
      const span = { _id: { $gt: afterId, $lt: firstIdAt('msg', beforeMs) } };
      // A message that a rollback takes back must not get a delivery.
      const found = messages.find(span, { readConcern: { level: 'majority' } });
      return (
        await found
          .project<MessageDocument>(WITHOUT_PAYLOAD)
          .sort({ _id: 1 })
          .limit(limit)
          .toArray()
      ).map(toMessage);
    },
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
  };
}
