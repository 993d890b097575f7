import { describe, expect, test } from '@jest/globals';
import type { mongo } from 'mongoose';
import { createPortalSettings } from './portal-settings.ts';

/** A database of one company whose finds end when they are told to. */
function databaseOf(companyId: string, origins: string[]) {
  const asked: number[] = [];
  const find = ({ _id: { $in: ids } }: { _id: { $in: string[] } }) => {
    asked.push(ids.length);
    const found = ids.includes(companyId) ? [{ _id: companyId, companyId, origins }] : [];
    return { toArray: () => new Promise((resolve) => setImmediate(resolve, found)) };
  };
  return { asked, db: { collection: () => ({ find }) } as unknown as mongo.Db };
}

describe('the settings of portals that anyone may ask for', () => {
  test('are read in batches, one after the other', async () => {
    const { asked, db } = databaseOf('comp_7', ['https://app.example.com']);
    const settings = createPortalSettings(db, () => 0);
    const ids = Array.from({ length: 900 }, (_, n) => `comp_${n}`);
    const found = await Promise.all(ids.map(settings.readCached));
    expect(asked.length).toBeLessThan(10);
    const framed = found.flatMap(({ origins }, n) => (origins.length > 0 ? [ids[n]] : []));
    expect(framed).toEqual(['comp_7']);
  });

  test('are refused with 503 when too many wait', async () => {
    const settings = createPortalSettings(databaseOf('comp_7', []).db, () => 0);
    const reads = Array.from({ length: 1_500 }, (_, n) => settings.readCached(`comp_${n}`));
    const refused = (await Promise.allSettled(reads)).filter(({ status }) => status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]).toMatchObject({ reason: { status: 503, code: 'unavailable' } });
  });
});
