import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { PublisherDocument } from '../documents.ts';

export interface PublisherStore {
  /** Says "alive, published up to here", with the database's clock. Makes the document when it is missing. */
  heartbeat: (id: string, watermark: string, behindMs: number | null) => Promise<void>;
  /** Publishers whose heartbeat is older than `staleMs`, or whose oldest message waits longer than `behindMs`. */
  findToSweep: (limits: { staleMs: number; behindMs: number }) => Promise<SweepCandidate[]>;
  /** Notes how far the sweeper got. */
  markSwept: (id: string, sweptTo: string) => Promise<void>;
  /** Forgets a publisher that is silent for `silentMs` and swept to its end. */
  forget: (id: string, silentMs: number) => Promise<void>;
}

export type SweepCandidate = Pick<PublisherDocument, '_id' | 'watermark' | 'sweptTo'>;

export function createPublisherStore(db: mongo.Db): PublisherStore {
  const publishers = collection(db, 'publishers');
  const before = (ms: number) => ({ $subtract: ['$$NOW', ms] });
  return {
    async heartbeat(id, watermark, behindMs) {
      const behindSince = behindMs === null ? null : before(behindMs);
      await publishers.updateOne(
        { _id: id },
        [{ $set: { heartbeatAt: '$$NOW', watermark, behindSince } }],
        { upsert: true },
      );
    },
    findToSweep: ({ staleMs, behindMs }) =>
      publishers
        .find({
          $expr: {
            $or: [
              { $lt: ['$heartbeatAt', before(staleMs)] },
              {
                $and: [
                  { $ne: ['$behindSince', null] },
                  { $lt: ['$behindSince', before(behindMs)] },
                ],
              },
            ],
          },
        })
        .project<SweepCandidate>({ watermark: 1, sweptTo: 1 })
        .toArray(),
    async markSwept(_id, sweptTo) {
      await publishers.updateOne({ _id }, { $set: { sweptTo } });
    },
    async forget(_id, silentMs) {
      await publishers.deleteOne({ _id, $expr: { $lt: ['$heartbeatAt', before(silentMs)] } });
    },
  };
}
