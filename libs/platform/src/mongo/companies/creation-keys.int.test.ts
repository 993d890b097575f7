import { beforeAll, describe, expect, it } from '@jest/globals';
import { DAY_MS } from '@posthorn/domain/ids.ts';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import {
  type CreationKey,
  type CreationKeyStore,
  createCreationKeyStore,
} from './creation-keys.ts';
import { createCompanyRemoval } from './removals.ts';

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let keys: CreationKeyStore;

beforeAll(() => {
  keys = createCreationKeyStore(database.db);
});

const keyNamed = (key: string): CreationKey => ({
  companyId: 'comp_a',
  within: '',
  route: 'post /apps',
  key,
});

const claimOf = (holder: string) => ({
  holder,
  requestHash: `hash of ${holder}`,
  idPart: `id of ${holder}`,
  sealed: '$not a field',
});

describe('a key of a creation', () => {
  it('is claimed by one of a hundred requests, and the others see who has it', async () => {
    const key = keyNamed('$$many');
    const holders = Array.from({ length: 100 }, (_, n) => `holder-${n}`);
    const found = await Promise.all(holders.map((holder) => keys.claim(key, claimOf(holder))));
    const winners = holders.filter((_, n) => found[n] === null);
    expect(winners).toHaveLength(1);
    const [winner = ''] = winners;
    const { requestHash, idPart } = claimOf(winner);
    for (const claimed of found) {
      if (claimed === null || claimed === 'undecided') continue;
      expect(claimed).toEqual({
        holder: winner,
        requestHash,
        idPart,
        status: 'running',
        ageMs: expect.any(Number),
        heldMs: expect.any(Number),
        storedBytes: expect.any(Number),
      });
      expect(claimed.ageMs).toBeLessThan(60_000);
    }
  });

  it('may be claimed once more by its holder, as the driver repeats a write', async () => {
    const key = keyNamed('retried');
    expect(await keys.claim(key, claimOf('one'))).toBeNull();
    expect(await keys.claim(key, claimOf('one'))).toBeNull();
  });

  it('counts for its company, caller and route', async () => {
    const key = keyNamed('common');
    const others = [{ companyId: 'comp_b' }, { within: 'app_1' }, { route: 'post /projects' }];
    for (const other of [{}, ...others]) {
      expect(await keys.claim({ ...key, ...other }, claimOf('one'))).toBeNull();
    }
  });

  it('goes to one of those that take it over, with its ids and seed', async () => {
    const key = keyNamed('taken over');
    await keys.claim(key, claimOf('dead'));
    const taken = await Promise.all(['a', 'b'].map((holder) => keys.takeOver(key, 'dead', holder)));
    expect(taken.toSorted()).toEqual([false, true]);
    const holder = taken[0] ? 'a' : 'b';
    expect(await keys.readSealed(key, holder)).toBe('$not a field');
    expect(await keys.readSealed(key, 'dead')).toBeNull();
    expect(await keys.claim(key, claimOf('late'))).toMatchObject({ holder, idPart: 'id of dead' });
  });

  it('keeps the response of its holder, and nothing of one that has lost it', async () => {
    const key = keyNamed('done');
    await keys.claim(key, claimOf('dead'));
    await keys.takeOver(key, 'dead', 'holder');
    await keys.complete(key, 'holder', '$the response');
    await keys.complete(key, 'dead', 'another response');
    await keys.interrupt(key, 'dead');
    await keys.free(key, 'dead');
    expect(await keys.claim(key, claimOf('repeat'))).toMatchObject({ status: 'done' });
    expect(await keys.readSealed(key, 'holder')).toBe('$the response');
  });

  it('is interrupted and freed by its holder', async () => {
    const key = keyNamed('freed');
    await keys.claim(key, claimOf('holder'));
    await keys.interrupt(key, 'holder');
    expect(await keys.claim(key, claimOf('repeat'))).toMatchObject({ status: 'interrupted' });
    await keys.free(key, 'holder');
    expect(await keys.claim(key, claimOf('next'))).toBeNull();
  });

  it('is old by the clock of the database', async () => {
    const key = keyNamed('old');
    await keys.claim(key, claimOf('holder'));
    const documents = collection(database.db, 'idempotencyKeys');
    const createdAt = new Date(Date.now() - DAY_MS);
    await documents.updateMany({ _id: /\nold$/ }, { $set: { createdAt } });
    const found = await keys.claim(key, claimOf('repeat'));
    if (found === null || found === 'undecided') throw new Error('it is claimed');
    expect(found.ageMs).toBeGreaterThanOrEqual(DAY_MS);
    expect(found.heldMs).toBeLessThan(60_000);
  });

  it('is removed with its company', async () => {
    await keys.claim({ ...keyNamed('removed'), companyId: 'comp_gone' }, claimOf('holder'));
    const removal = createCompanyRemoval(database.db);
    while ((await removal.removeSome('comp_gone', 100)) > 0);
    const left = collection(database.db, 'idempotencyKeys');
    expect(await left.countDocuments({ companyId: 'comp_gone' })).toBe(0);
    expect(await left.countDocuments({ companyId: 'comp_a' })).toBeGreaterThan(0);
  });
});
