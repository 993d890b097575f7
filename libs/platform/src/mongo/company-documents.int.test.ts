import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { mongo } from 'mongoose';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../test/support/stores/scratch-database.ts';
import { collection } from './collections.ts';
import { documentsOf, type CompanyDocuments } from './company-documents.ts';
import type { AppDocument } from './documents.ts';

type OwnFilter = mongo.Filter<Omit<AppDocument, 'companyId'>>;

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let mine: CompanyDocuments<'apps'>;

function app(_id: string, companyId: string): AppDocument {
  const times = { createdAt: new Date(1), updatedAt: new Date(1) };
  const texts = { name: 'App', description: '', environment: 'development' as const };
  return { _id, companyId, projectId: 'proj_1', ...texts, ...times };
}

beforeAll(() => {
  mine = documentsOf(database.db, 'apps', 'comp_a');
});

beforeEach(async () => {
  await collection(database.db, 'apps').deleteMany({});
  await collection(database.db, 'apps').insertMany([
    ...[app('app_1', 'comp_a'), app('app_2', 'comp_a')],
    ...[app('app_3', 'comp_b'), app('app_4', 'comp_b')],
  ]);
});

const all = () => collection(database.db, 'apps').find({}).sort({ _id: 1 }).toArray();
const theirs = async () => (await all()).filter(({ companyId }) => companyId === 'comp_b');
const UNTOUCHED = [app('app_3', 'comp_b'), app('app_4', 'comp_b')];

describe('the documents of a company', () => {
  it('are found, counted, changed and removed without those of others', async () => {
    expect(await mine.find({}).sort({ _id: 1 }).toArray()).toMatchObject([
      { _id: 'app_1' },
      { _id: 'app_2' },
    ]);
    expect(await mine.findOne({ _id: 'app_2' })).toEqual(app('app_2', 'comp_a'));
    expect(await mine.count({})).toBe(2);
    expect(await mine.count({}, { limit: 1 })).toBe(1);
    expect(await mine.updateOne({ _id: 'app_1' }, { $set: { name: 'New' } })).toEqual({
      ...app('app_1', 'comp_a'),
      name: 'New',
    });
    expect(await mine.setOne({ _id: 'app_1' }, { name: 'Set' })).toEqual({
      before: { ...app('app_1', 'comp_a'), name: 'New' },
      after: { ...app('app_1', 'comp_a'), name: 'Set' },
    });
    expect(await mine.findOne({ _id: 'app_1' })).toMatchObject({ name: 'Set' });
    expect(await mine.updateMany({}, { $set: { name: 'Newer' } })).toBe(2);
    expect(await mine.deleteMany({ _id: 'app_1' })).toBe(1);
    expect(await mine.count({})).toBe(1);
    expect(await theirs()).toEqual(UNTOUCHED);
  });

  it('are inserted with the company, whatever the document says', async () => {
    await mine.insert(app('app_5', 'comp_b'));
    expect(await mine.findOne({ _id: 'app_5' })).toMatchObject({ companyId: 'comp_a' });
    expect(await theirs()).toEqual(UNTOUCHED);
  });
});

// The types refuse these filters; here they come as if from an unchecked request.
const FOREIGN: [string, object][] = [
  ['an id of another company', { _id: 'app_3' }],
  ['another company by name', { companyId: 'comp_b', _id: 'app_3' }],
  ['any of two companies', { companyId: { $in: ['comp_a', 'comp_b'] }, _id: 'app_3' }],
  ['another company in an or', { $or: [{ companyId: 'comp_b' }, { _id: 'app_3' }] }],
  ['another company in an and', { $and: [{ companyId: 'comp_b' }] }],
  ['another company in an expression', { $expr: { $eq: ['$companyId', 'comp_b'] } }],
];

describe('a filter that names another company', () => {
  it.each(FOREIGN)('finds, changes and removes none of its documents: %s', async (_what, given) => {
    const filter = given as OwnFilter;
    const $set = { name: 'Mine now' };
    expect(await mine.findOne(filter)).toBeNull();
    expect(await mine.find(filter).toArray()).toEqual([]);
    expect(await mine.count(filter)).toBe(0);
    expect(await mine.updateOne(filter, { $set })).toBeNull();
    expect(await mine.setOne(filter, $set)).toBeNull();
    expect(await mine.updateMany(filter, { $set })).toBe(0);
    expect(await mine.deleteMany(filter)).toBe(0);
    expect(await theirs()).toEqual(UNTOUCHED);
  });

  it('applies to the own documents when it has no other condition', async () => {
    const filter = { companyId: { $ne: 'comp_a' } } as OwnFilter;
    const found = await mine.find(filter).toArray();
    expect(found.map(({ companyId }) => companyId)).toEqual(['comp_a', 'comp_a']);
    expect(await mine.deleteMany(filter)).toBe(2);
    expect(await theirs()).toEqual(UNTOUCHED);
  });
});
