import type { mongo } from 'mongoose';
import { collection } from '../collections.ts';
import type { PublisherDocument } from '../documents.ts';

/**
 * The gateways that have published or are to publish messages, by the database's clock. The backlog of
 * a publisher has one owner: its gateway, or, from a take-over on, the sweep. A take-over is final.
 */
export interface PublisherStore {
  /** Stores a new publisher. Only then may messages name it. */
  register: (id: string, watermark: string) => Promise<void>;
  /**
   * Stores that the publisher is alive and has published everything up to `watermark`. For `stuckMs` it has
   * waited for Kafka, or for the store to read messages back, or has stopped publishing; null when it publishes. Returns
   * false, and stores nothing, when the publisher was taken from the gateway.
   */
  heartbeat: (id: string, watermark: string, stuckMs: number | null) => Promise<boolean>;
  /**
   * Gives the backlog after `watermark` to the sweep. The publisher is kept as if it were alive now: an
   * insert may still be running. Makes one that the sweep has forgotten known again.
   */
  handOver: (id: string, watermark: string) => Promise<void>;
  /** By id, how far each of them has published. A publisher is missing once everything that it stored is published. */
  progressOf: (ids: readonly string[]) => Promise<Map<string, PublisherProgress>>;
  list: () => Promise<KnownPublisher[]>;
  /**
   * Makes the sweep the owner. Returns false, and changes nothing, when the publisher has sent a
   * heartbeat or raised its watermark since it was listed, as `unchanged` names it.
   */
  takeOver: (listed: KnownPublisher, unchanged: 'heartbeat' | 'watermark') => Promise<boolean>;
  /** Stores up to which message the sweep has published for the publisher; an earlier one than before is ignored. */
  markSwept: (id: string, sweptTo: string) => Promise<void>;
  /** Removes the publisher if its heartbeat is older than `silentMs`. */
  forget: (id: string, silentMs: number) => Promise<void>;
}

/** How far the messages of a publisher are published. */
export interface PublisherProgress {
  watermark: string;
  /** '' when the sweep has published nothing for it. */
  sweptTo: string;
}

export interface KnownPublisher extends PublisherProgress {
  id: string;
  isTakenOver: boolean;
  /** When the last heartbeat was stored, in milliseconds since 1970. */
  heartbeatAtMs: number;
  /** How long ago that was. */
  silentMs: number;
  /** For how long it has waited for Kafka or the store, or has stopped publishing, in milliseconds; null when it publishes. */
  stuckMs: number | null;
}

type Publishers = mongo.Collection<PublisherDocument>;

const PROGRESS = { watermark: 1, sweptTo: 1 } as const;
const IS_OWN = { takenOverAt: { $exists: false } };
const before = (ms: number) => ({ $subtract: ['$$NOW', ms] });

export function createPublisherStore(db: mongo.Db): PublisherStore {
  const publishers = collection(db, 'publishers');
  return { ...forGateways(publishers), ...forSweep(publishers) };
}

function forGateways(
  publishers: Publishers,
): Pick<PublisherStore, 'register' | 'heartbeat' | 'handOver' | 'forget' | 'progressOf'> {
  return {
    async register(_id, watermark) {
      await publishers.updateOne(
        { _id },
        [{ $set: { heartbeatAt: '$$NOW', watermark, behindSince: null } }],
        { upsert: true },
      );
    },
    async heartbeat(_id, watermark, stuckMs) {
      const behindSince = stuckMs === null ? null : before(stuckMs);
      const { matchedCount } = await publishers.updateOne({ _id, ...IS_OWN }, [
        { $set: { heartbeatAt: '$$NOW', watermark, behindSince } },
      ]);
      return matchedCount === 1;
    },
    async handOver(_id, watermark) {
      const now = '$$NOW';
      const handedOver = { heartbeatAt: now, takenOverAt: now, watermark, behindSince: null };
      await publishers.updateOne({ _id }, [{ $set: handedOver }], { upsert: true });
    },
    async progressOf(ids) {
      const found = await publishers
        .find({ _id: { $in: [...ids] } })
        .project<Pick<PublisherDocument, '_id' | 'watermark' | 'sweptTo'>>(PROGRESS)
        .toArray();
      return new Map(
        found.map(({ _id, watermark, sweptTo = '' }) => [_id, { watermark, sweptTo }]),
      );
    },
    async forget(_id, silentMs) {
      await publishers.deleteOne({ _id, $expr: { $lt: ['$heartbeatAt', before(silentMs)] } });
    },
  };
}

function forSweep(publishers: Publishers): Pick<PublisherStore, 'list' | 'takeOver' | 'markSwept'> {
  return {
    async list() {
      const found = publishers.find().project<ListedDocument>({
        watermark: 1,
        sweptTo: 1,
        heartbeatAt: 1,
        takenOverAt: 1,
        silentMs: { $subtract: ['$$NOW', '$heartbeatAt'] },
        stuckMs: { $subtract: ['$$NOW', '$behindSince'] },
      });
      return (await found.toArray()).map(toKnown);
    },
    async takeOver({ id, heartbeatAtMs, watermark }, unchanged) {
      const same =
        unchanged === 'heartbeat' ? { heartbeatAt: new Date(heartbeatAtMs) } : { watermark };
      const { matchedCount } = await publishers.updateOne({ _id: id, ...IS_OWN, ...same }, [
        { $set: { takenOverAt: '$$NOW' } },
      ]);
      return matchedCount === 1;
    },
    async markSwept(_id, sweptTo) {
      await publishers.updateOne({ _id }, { $max: { sweptTo } });
    },
  };
}

type ListedDocument = Pick<
  PublisherDocument,
  '_id' | 'watermark' | 'sweptTo' | 'heartbeatAt' | 'takenOverAt'
> & { silentMs: number; stuckMs: number | null };

function toKnown(document: ListedDocument): KnownPublisher {
  const { _id: id, watermark, sweptTo = '', takenOverAt, heartbeatAt } = document;
  const { silentMs, stuckMs } = document;
  return {
    id,
    watermark,
    sweptTo,
    isTakenOver: takenOverAt !== undefined,
    heartbeatAtMs: heartbeatAt.getTime(),
    silentMs,
    stuckMs,
  };
}
