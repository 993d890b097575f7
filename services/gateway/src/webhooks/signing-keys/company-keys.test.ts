import { beforeEach, describe, expect, test } from '@jest/globals';
import type { SigningKey } from '@posthorn/domain/request/signing-keys.ts';
import { countingIds } from '../../../../../test/support/samples/sample-message.ts';
import { createCompanyKeys, type CompanyKeys } from './company-keys.ts';

const COMPANY = 'comp_a';

let stored: Map<number, SigningKey>;
let retired: [number, number][];
let invalidated: unknown[];
/** What other processes store right before the next insert. */
let others: SigningKey[];
let nowMs: number;
let keys: CompanyKeys;

beforeEach(() => {
  stored = new Map();
  [retired, invalidated, others, nowMs] = [[], [], [], 1_000];
  keys = createCompanyKeys({
    store: {
      find: () => Promise.reject(new Error('not called')),
      newestNumber: () => Promise.resolve(Math.max(0, ...stored.keys())),
      insert(key) {
        const other = others.shift();
        if (other) stored.set(other.number, other);
        if (stored.has(key.number)) return Promise.resolve(false);
        stored.set(key.number, key);
        return Promise.resolve(true);
      },
      retire: (_company, number, atMs) => Promise.resolve(void retired.push([number, atMs])),
    },
    newId: countingIds(),
    nowMs: () => nowMs,
    invalidate: (each) => Promise.resolve(void invalidated.push(each)),
  });
});

const elsewhere = (number: number): SigningKey => ({
  id: `skey_elsewhere-${number}`,
  companyId: COMPANY,
  number,
  privateKey: 'd',
  publicKey: 'x',
  createdAtMs: 0,
  previousUntilMs: null,
});

describe('the first key of a company', () => {
  test('is made once', async () => {
    await keys.ensure(COMPANY);
    const first = stored.get(1);
    expect(first).toMatchObject({ companyId: COMPANY, createdAtMs: 1_000, previousUntilMs: null });
    await keys.ensure(COMPANY);
    expect([...stored.values()]).toEqual([first]);
  });

  test('is that of the process that was first', async () => {
    others = [elsewhere(1)];
    await keys.ensure(COMPANY);
    expect([...stored.values()]).toEqual([elsewhere(1)]);
  });

  test('is made by a rotation too, without a grace', async () => {
    const made = await keys.rotate(COMPANY, 60);
    expect(made).toMatchObject({ number: 1, previousUntilMs: null });
    expect(retired).toEqual([]);
  });
});

describe('a rotation', () => {
  test('makes another key beside the one before, for the grace, and announces it', async () => {
    await keys.ensure(COMPANY);
    const made = await keys.rotate(COMPANY, 60);
    expect(made).toMatchObject({ number: 2, previousUntilMs: 61_000 });
    expect(made.publicKey).not.toBe(stored.get(1)?.publicKey);
    expect(stored.get(2)).toBe(made);
    expect(retired).toEqual([[1, 61_000]]);
    expect(invalidated).toEqual([{ companyId: COMPANY, id: COMPANY }]);
  });

  test('without a grace ends the one before at once', async () => {
    await keys.ensure(COMPANY);
    expect(await keys.rotate(COMPANY, 0)).toMatchObject({ previousUntilMs: 1_000 });
  });

  test('comes after one that another process makes at the same moment', async () => {
    stored.set(1, elsewhere(1));
    others = [elsewhere(2), elsewhere(3)];
    expect(await keys.rotate(COMPANY, 60)).toMatchObject({ number: 4 });
    expect(retired).toEqual([[3, 61_000]]);
  });

  test('is refused while others keep rotating', async () => {
    others = Array.from({ length: 10 }, (_, n) => elsewhere(n + 1));
    await expect(keys.rotate(COMPANY, 60)).rejects.toMatchObject({ status: 503 });
  });
});
