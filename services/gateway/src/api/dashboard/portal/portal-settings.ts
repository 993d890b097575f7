import { createCoalescingCache } from '@posthorn/platform/async/coalescing-cache.ts';
import { createBatcher } from '@posthorn/platform/async/batching/batcher.ts';
import { collection } from '@posthorn/platform/mongo/documents/collections.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { mongo } from 'mongoose';
import { unavailable } from '../../../http/api-error.ts';

/** Which pages may frame the portal of a company, and have the images that its theme names. */
export interface PortalSettings {
  origins: readonly string[];
}

export interface PortalSettingsStore {
  read: (companyId: string) => Promise<PortalSettings>;
  /** As it was seconds ago: everyone may load the page of a portal. Throws ApiError 503 when too many wait. */
  readCached: (companyId: string) => Promise<PortalSettings>;
  write: (companyId: string, settings: PortalSettings) => Promise<void>;
}

/** A change is seen by other gateways after this time. */
const CACHED_MS = 5_000;
/** Look-ups that may wait at once; further ones get 503. */
const MAX_WAITING = 1_000;
const MAX_CACHED = 1_000;
const NONE: PortalSettings = { origins: [] };

export function createPortalSettings(db: mongo.Db, nowMs: () => number): PortalSettingsStore {
  const cache = createCoalescingCache<PortalSettings>({
    maxSize: MAX_CACHED,
    sizeOf: () => 1,
    ttlMs: CACHED_MS,
  });
  const settingsOf = (companyId: string) => documentsOf(db, 'portalSettings', companyId);

  async function read(companyId: string): Promise<PortalSettings> {
    const found = await settingsOf(companyId).findOne({ _id: companyId });
    return found ? { origins: found.origins } : NONE;
  }

  const readSoon = createBatchedRead(db);
  return {
    read,
    readCached: async (companyId) =>
      (await cache.get(companyId, () => readSoon(companyId))) ?? NONE,
    async write(companyId, { origins }) {
      await settingsOf(companyId).upsertOne(
        { _id: companyId },
        {
          $set: { origins: [...origins], updatedAt: new Date(nowMs()) },
        },
      );
      cache.forget(companyId);
    },
  };
}

/**
 * Reads for requests without a session, which anyone can send with any id: in batches, one at a time, so that a flood of
 * them costs MongoDB little.
 */
function createBatchedRead(db: mongo.Db): (companyId: string) => Promise<PortalSettings> {
  const batch = createBatcher<string, PortalSettings>({
    maxItems: 200,
    lingerMs: 1,
    maxInFlight: 1,
    run: async (ids) => {
      const stored = collection(db, 'portalSettings').find({ _id: { $in: [...new Set(ids)] } });
      const found = new Map((await stored.toArray()).map((each) => [each._id, each]));
      return ids.map((id) => ({ origins: found.get(id)?.origins ?? [] }));
    },
  });
  return async (companyId) => {
    if (batch.size() >= MAX_WAITING) throw unavailable('too_many_waiting');
    return batch.add(companyId);
  };
}
