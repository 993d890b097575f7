import { describe, expect, test } from '@jest/globals';
import { type FoundIndex, type IndexSpec, planIndexes, versionOf } from './indexes.ts';

const BY_COMPANY: IndexSpec = { collection: 'messages', key: { companyId: 1, _id: 1 } };
const EXPIRY: IndexSpec = {
  collection: 'messages',
  key: { createdAt: 1 },
  options: { expireAfterSeconds: 60 },
};
const ID: FoundIndex = { name: '_id_', key: { _id: 1 } };
const found = (...indexes: FoundIndex[]) => new Map([['messages', [ID, ...indexes]]]);
const namesOf = (indexes: readonly { name: string }[]): string[] => indexes.map(({ name }) => name);

describe('a plan of indexes', () => {
  test('asks for all of them under the names that MongoDB gives', () => {
    const { toCreate, toResize, toDrop } = planIndexes([BY_COMPANY, EXPIRY], found());
    expect(namesOf(toCreate)).toEqual(['companyId_1__id_1', 'createdAt_1']);
    expect([toResize, toDrop]).toEqual([[], []]);
  });

  test('keeps the name of an index that exists under another one', () => {
    const { toCreate, toDrop } = planIndexes([BY_COMPANY], found({ ...BY_COMPANY, name: 'mine' }));
    expect(namesOf(toCreate)).toEqual(['mine']);
    expect(toDrop).toEqual([]);
  });

  test('changes the time of an expiry in place', () => {
    const existing = found({ name: 'createdAt_1', key: EXPIRY.key, expireAfterSeconds: 7 });
    expect(planIndexes([EXPIRY], existing)).toMatchObject({
      toResize: [{ collection: 'messages', name: 'createdAt_1', expireAfterSeconds: 60 }],
      toDrop: [],
    });
  });

  test('makes an index with other options beside the old one, and drops that one afterwards', () => {
    const unique = { ...BY_COMPANY, options: { unique: true } };
    const old = { name: 'companyId_1__id_1', key: BY_COMPANY.key };
    const { toCreate, toDrop } = planIndexes([unique], found(old));
    expect(namesOf(toCreate)).toEqual([expect.stringMatching(/^companyId_1__id_1_[0-9a-f]{8}$/)]);
    expect(toDrop).toEqual([{ collection: 'messages', name: 'companyId_1__id_1' }]);
    const [created] = toCreate;
    const both = found(old, { name: created?.name ?? '', key: unique.key, unique: true });
    expect(planIndexes([unique], both)).toMatchObject({ toCreate, toDrop });
  });

  test('drops what is no longer needed, and never what it does not know', () => {
    const foreign = { name: 'theirs', key: { text: 1 } };
    const old = { name: 'appId_1', key: { appId: 1 } };
    const retired = [
      { collection: 'messages', key: { appId: 1 } as const },
      { collection: 'messages', key: BY_COMPANY.key },
    ];
    const existing = found(foreign, old, { ...BY_COMPANY, name: 'companyId_1__id_1' });
    expect(planIndexes([BY_COMPANY], existing, retired).toDrop).toEqual([
      { collection: 'messages', name: 'appId_1' },
    ]);
  });
});

test('the version of the indexes changes with them, and not with a retention or their order', () => {
  const longer = { ...EXPIRY, options: { expireAfterSeconds: 120 } };
  const version = versionOf([BY_COMPANY, EXPIRY]);
  expect(versionOf([longer, BY_COMPANY])).toBe(version);
  expect(versionOf([BY_COMPANY])).not.toBe(version);
  expect(versionOf([BY_COMPANY, EXPIRY], [{ collection: 'x', key: { a: 1 } }])).not.toBe(version);
});
