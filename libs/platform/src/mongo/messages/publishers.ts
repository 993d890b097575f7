import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { PublisherDocument } from '../documents.ts';

/** The running gateways, by the database's clock. */
export interface PublisherStore {
  /**
   * Stores that the publisher is alive and has published everything up to `watermark`. Its oldest
   * unpublished message has waited for `behindMs`; null when there is none.
   */
  heartbeat: (id: string, watermark: string, behindMs: number | null) => Promise<void>;
  /** Publishers whose heartbeat is older than `staleMs`, or whose oldest message waits longer than `behindMs`. */
  findToSweep: (limits: { staleMs: number; behindMs: number }) => Promise<SweepCandidate[]>;
  /** Stores up to which message the sweep has published for the publisher. */
  markSwept: (id: string, sweptTo: string) => Promise<void>;
  /** Removes the publisher if its heartbeat is older than `silentMs`. */
  forget: (id: string, silentMs: number) => Promise<void>;
}

export interface SweepCandidate {
  id: string;
  watermark: string;
  /** '' when the sweep has published nothing for it. */
  sweptTo: string;
}

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
    async findToSweep({ staleMs, behindMs }) {
      const isStale = { $lt: ['$heartbeatAt', before(staleMs)] };
      const isBehind = {
        $and: [{ $ne: ['$behindSince', null] }, { $lt: ['$behindSince', before(behindMs)] }],
      };
      const found = await publishers
        .find({ $expr: { $or: [isStale, isBehind] } })
        .project<Pick<PublisherDocument, '_id' | 'watermark' | 'sweptTo'>>({
          watermark: 1,
          sweptTo: 1,
        })
        .toArray();
      return found.map(({ _id: id, watermark, sweptTo = '' }) => ({ id, watermark, sweptTo }));
    },
    async markSwept(_id, sweptTo) {
      await publishers.updateOne({ _id }, { $set: { sweptTo } });
    },
    async forget(_id, silentMs) {
      await publishers.deleteOne({ _id, $expr: { $lt: ['$heartbeatAt', before(silentMs)] } });
    },
  };
}
