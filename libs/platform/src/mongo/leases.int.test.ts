import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  openScratchDatabase,
  type ScratchDatabase,
} from '../../../../test/support/stores/scratch-database.ts';
import { createLeaseStore, type LeaseStore } from './leases.ts';

describe('a lease', () => {
  let database: ScratchDatabase;
  let leases: LeaseStore;

  beforeAll(async () => {
    database = await openScratchDatabase();
    leases = createLeaseStore(database.db);
  });

  afterAll(() => database.drop());

  it('belongs to the first who asks, who may renew it, and to nobody else', async () => {
    expect(await leases.hold('a', 'first', 60_000)).toBe(true);
    expect(await leases.hold('a', 'second', 60_000)).toBe(false);
    expect(await leases.hold('a', 'first', 60_000)).toBe(true);
  });

  it('is free again when it was released or has expired', async () => {
    await leases.hold('b', 'first', 60_000);
    await leases.release('b', 'first');
    expect(await leases.hold('b', 'second', -1)).toBe(true);
    expect(await leases.hold('b', 'third', 60_000)).toBe(true);
  });

  it('is not released by somebody else', async () => {
    await leases.hold('c', 'first', 60_000);
    await leases.release('c', 'second');
    expect(await leases.hold('c', 'second', 60_000)).toBe(false);
  });

  it('goes to exactly one of many who ask at once', async () => {
    const holders = Array.from({ length: 20 }, (_, n) => `holder-${n}`);
    const answers = await Promise.all(holders.map((holder) => leases.hold('d', holder, 60_000)));
    expect(answers.filter(Boolean)).toHaveLength(1);
  });
});
