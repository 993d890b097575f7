import { CoalescingCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { readPortalOrigins } from '@posthorn/platform/mongo/companies/companies.ts';
import { documentsOf } from '@posthorn/platform/mongo/company-documents.ts';
import type { mongo } from 'mongoose';
import { createPublicRead } from '../limits/rate-limits.ts';

/** The origins that may frame the portal of a company, and have the images that its theme names. */
interface PortalSettings {
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
const MAX_CACHED = 1_000;
const NONE: PortalSettings = { origins: [] };

export function createPortalSettings(db: mongo.Db, nowMs: () => number): PortalSettingsStore {
  const cache = new CoalescingCache<PortalSettings>({
    maxSize: MAX_CACHED,
    sizeOf: () => 1,
    ttlMs: CACHED_MS,
  });
  const settingsOf = (companyId: string) => documentsOf(db, 'portalSettings', companyId);

  async function read(companyId: string): Promise<PortalSettings> {
    const found = await settingsOf(companyId).findOne({ _id: companyId });
    return found ? { origins: found.origins } : NONE;
  }

  const readOrigins = createPublicRead((ids) => readPortalOrigins(db, ids));
  return {
    read,
    readCached: async (companyId) =>
      (await cache.get(companyId, async () => ({
        origins: (await readOrigins(companyId)) ?? NONE.origins,
      }))) ?? NONE,
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
