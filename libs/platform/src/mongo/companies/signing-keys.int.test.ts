import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { sampleSigningKey } from '../../../../../test/support/samples/sample-signing-key.ts';
import { randomKey } from '../../../../../test/support/samples/sample-webhook.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { createVault } from '../../security/vault.ts';
import { collection } from '../collections.ts';
import { countByKey, resealSigningKeys } from './resealing.ts';
import { createSigningKeyStore, type SigningKeyStore } from './signing-keys.ts';

const [OLD, NEW] = [randomKey('old'), randomKey('new')];
const UNTIL_MS = 9_000;
const first = sampleSigningKey(1);
const second = sampleSigningKey(2, { previousUntilMs: UNTIL_MS });
const other = sampleSigningKey(1, { id: 'skey_b', companyId: 'comp_b' });

describe('the store of signing keys', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());
  let store: SigningKeyStore;

  beforeAll(() => {
    store = createSigningKeyStore(database.db, createVault([OLD]));
  });

  beforeEach(async () => {
    await collection(database.db, 'signingKeys').deleteMany({});
  });

  it('finds the keys of a company that sign at a time, and those of no other', async () => {
    expect(await store.find('comp_a', 0)).toBeNull();
    for (const key of [first, second, other]) expect(await store.insert(key)).toBe(true);
    const previous = { key: first, expiresAtMs: UNTIL_MS };
    expect(await store.find('comp_a', 0)).toEqual({ current: second, previous });
    expect(await store.find('comp_a', UNTIL_MS)).toEqual({ current: second, previous: null });
    expect(await store.newestNumber('comp_a')).toBe(2);
    expect(await store.newestNumber('comp_c')).toBe(0);
    const found = await store.findMany(['comp_a', 'comp_b', 'comp_c'], 0);
    expect(Object.fromEntries(found)).toEqual({
      comp_a: { kind: 'opened', keys: { current: second, previous } },
      comp_b: { kind: 'opened', keys: { current: other, previous: null } },
    });
  });

  it('stores one key of each number, whoever comes first', async () => {
    const keys = Array.from({ length: 20 }, (_, n) => sampleSigningKey(1, { id: `skey_${n}` }));
    const inserted = await Promise.all(keys.map((key) => store.insert(key)));
    expect(inserted.filter(Boolean)).toHaveLength(1);
    expect(await collection(database.db, 'signingKeys').countDocuments({})).toBe(1);
  });

  it('keeps the newest key and the one before, which MongoDB removes at the end of its grace', async () => {
    const third = sampleSigningKey(3, { previousUntilMs: UNTIL_MS });
    for (const key of [first, second, third, other]) await store.insert(key);
    await store.retire('comp_a', 2, UNTIL_MS);
    const left = await collection(database.db, 'signingKeys').find().sort({ _id: 1 }).toArray();
    expect(left.map(({ _id, expiresAt }) => [_id, expiresAt?.getTime()])).toEqual([
      [second.id, UNTIL_MS],
      [third.id, undefined],
      [other.id, undefined],
    ]);
    const indexes = await collection(database.db, 'signingKeys').indexes();
    expect(indexes.find(({ key }) => 'expiresAt' in key)).toMatchObject({ expireAfterSeconds: 0 });
  });

  it('returns a company whose keys cannot be opened beside the others', async () => {
    await store.insert(other);
    await createSigningKeyStore(database.db, createVault([NEW])).insert(first);
    const found = await store.findMany(['comp_a', 'comp_b'], 0);
    expect(found.get('comp_a')).toMatchObject({ kind: 'unopened', problem: { keyId: 'new' } });
    expect(found.get('comp_b')).toMatchObject({ kind: 'opened' });
    await expect(store.find('comp_a', 0)).rejects.toThrow('not in ENCRYPTION_KEYS');
    expect(await store.newestNumber('comp_a')).toBe(1);
  });

  it('seals the keys again for a rotation of the encryption keys', async () => {
    for (const key of [first, second, other]) await store.insert(key);
    const { db } = database;
    const problems: string[] = [];
    const rotated = createVault([NEW, OLD]);
    const resealed = await resealSigningKeys(db, rotated, ({ message }) => problems.push(message));
    expect([resealed, problems]).toEqual([{ resealed: 3, remaining: 0 }, []]);
    expect(await countByKey(db, 'signingKeys')).toEqual({ new: 3 });
    const onlyNew = createSigningKeyStore(db, createVault([NEW]));
    expect(await onlyNew.find('comp_a', 0)).toMatchObject({ current: second });
  });
});
