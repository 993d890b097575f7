import type { mongo } from 'mongoose';
import { collection, type CollectionName, type DocumentOf } from './collections.ts';
import type { DayKind } from './days/days.ts';

/** Collections whose documents belong to a company. */
export type OwnedName = {
  [Name in CollectionName]: DocumentOf[Name] extends { companyId: string } ? Name : never;
}[CollectionName];

/** All of them: the compiler refuses a collection that is missing. They are removed with their company. */
const OWNED: Record<OwnedName, true> = {
  apiKeys: true,
  projects: true,
  eventTypes: true,
  eventTypeVersions: true,
  apps: true,
  webhooks: true,
  signingKeys: true,
  messages: true,
  idempotencyKeys: true,
  deliveries: true,
  resends: true,
  filterCancellations: true,
  removals: true,
  holdNotes: true,
  sequences: true,
  links: true,
  people: true,
  peopleSettings: true,
  portalSettings: true,
  auditEvents: true,
  stats: true,
  usage: true,
};

export const OWNED_COLLECTIONS = Object.keys(OWNED) as OwnedName[];

/** The kinds of documents that are one collection. The others are spread over days: see `documentsIn`. */
export type UndividedName = Exclude<OwnedName, DayKind>;

type Owned<Name extends OwnedName> = DocumentOf[Name];
type Own<Name extends OwnedName> = Omit<DocumentOf[Name], 'companyId'>;

/** Something that was changed: exactly as this change found it and left it. */
export interface Changed<Value> {
  before: Value;
  after: Value;
}

/**
 * The documents of one company in one collection. Every filter contains the company, which keeps
 * companies apart.
 */
export interface CompanyDocuments<Name extends OwnedName> {
  find: (
    filter: mongo.Filter<Own<Name>>,
    options?: mongo.FindOptions,
  ) => mongo.FindCursor<mongo.WithId<Owned<Name>>>;
  findOne: (filter: mongo.Filter<Own<Name>>) => Promise<mongo.WithId<Owned<Name>> | null>;
  /** A field that is undefined is not stored. */
  insert: (document: Own<Name>) => Promise<void>;
  /** Inserts the documents in one request, each whatever becomes of the others. Throws a MongoBulkWriteError with those that fail. */
  insertEach: (documents: readonly Own<Name>[]) => Promise<void>;
  /** Returns the changed document; null when the filter matches none. */
  updateOne: (
    filter: mongo.Filter<Own<Name>>,
    update: mongo.UpdateFilter<Own<Name>>,
  ) => Promise<mongo.WithId<Owned<Name>> | null>;
  /**
   * Sets the fields, removes those that are undefined, and returns the document before and after; null when the filter
   * matches none.
   */
  setOne: (
    filter: mongo.Filter<Own<Name>>,
    fields: Partial<Own<Name>>,
  ) => Promise<Changed<mongo.WithId<Owned<Name>>> | null>;
  /** Updates the document that the filter matches, or makes it. */
  upsertOne: (
    filter: mongo.Filter<Own<Name>>,
    update: mongo.UpdateFilter<Own<Name>>,
  ) => Promise<void>;
  /** Returns how many were changed. */
  updateMany: (
    filter: mongo.Filter<Own<Name>>,
    update: mongo.UpdateFilter<Own<Name>>,
  ) => Promise<number>;
  /** Makes the updates in one request, in any order. Returns how many documents their filters match. */
  updateEach: (updates: readonly UpdateOf<Name>[]) => Promise<number>;
  /** Returns how many were removed. */
  deleteMany: (filter: mongo.Filter<Own<Name>>) => Promise<number>;
  /** Removes what any of the filters matches, in one request. */
  deleteEach: (filters: readonly mongo.Filter<Own<Name>>[]) => Promise<void>;
  count: (
    filter: mongo.Filter<Own<Name>>,
    options?: mongo.CountDocumentsOptions,
  ) => Promise<number>;
}

/** An update of the document that the filter matches; with `upsert` it is made when there is none. */
interface UpdateOf<Name extends OwnedName> {
  filter: mongo.Filter<Own<Name>>;
  update: mongo.UpdateFilter<Own<Name>>;
  upsert?: boolean;
}

export function documentsOf<Name extends UndividedName>(
  db: mongo.Db,
  name: Name,
  companyId: string,
): CompanyDocuments<Name> {
  // The compiler does not narrow the union of collections by `UndividedName`.
  const documents = collection(db, name) as unknown as mongo.Collection<Owned<Name>>;
  return documentsIn<Name>(documents, companyId);
}

/** The documents of one company in one of the collections of a name that is spread over days. */
export function documentsIn<Name extends OwnedName>(
  documents: mongo.Collection<DocumentOf[Name]>,
  companyId: string,
): CompanyDocuments<Name> {
  // Last in the object, so that it overrides any company in the filter.
  const within = (filter: object): mongo.Filter<Owned<Name>> =>
    ({ ...filter, companyId }) as mongo.Filter<Owned<Name>>;
  const owned = (document: Own<Name>) =>
    ({ ...withoutUndefined(document), companyId }) as mongo.OptionalUnlessRequiredId<Owned<Name>>;
  const change = (update: object): mongo.UpdateFilter<Owned<Name>> => update;
  const toUpdateOne = ({ filter, update, upsert = false }: UpdateOf<Name>) => ({
    updateOne: { filter: within(filter), update: change(update), upsert },
  });

  return {
    find: (filter, options) => documents.find(within(filter), options),
    findOne: (filter) => documents.findOne(within(filter)),
    async insert(document) {
      await documents.insertOne(owned(document));
    },
    async insertEach(given) {
      if (given.length > 0) await documents.insertMany(given.map(owned), { ordered: false });
    },
    updateOne: (filter, update) =>
      documents.findOneAndUpdate(within(filter), change(update), { returnDocument: 'after' }),
    async setOne(filter, fields) {
      const before = await documents.findOneAndUpdate(within(filter), change(settingOf(fields)));
      const after = withoutUndefined({ ...before, ...fields }) as mongo.WithId<Owned<Name>>;
      return before && { before, after };
    },
    async upsertOne(filter, update) {
      await documents.updateOne(within(filter), change(update), { upsert: true });
    },
    updateMany: async (filter, update) =>
      (await documents.updateMany(within(filter), change(update))).modifiedCount,
    updateEach: async (updates) => await writeEach(documents, updates.map(toUpdateOne)),
    deleteMany: async (filter) => (await documents.deleteMany(within(filter))).deletedCount,
    async deleteEach(filters) {
      await writeEach(
        documents,
        filters.map((filter) => ({ deleteMany: { filter: within(filter) } })),
      );
    },
    count: (filter, options) => documents.countDocuments(within(filter), options),
  };
}

/** Returns the update that sets the fields and removes those that are undefined. */
function settingOf(fields: object): object {
  const absent = Object.entries(fields).filter(([, value]) => value === undefined);
  return {
    $set: withoutUndefined(fields),
    ...(absent.length > 0 && { $unset: Object.fromEntries(absent.map(([name]) => [name, ''])) }),
  };
}

/** Returns how many documents the updates match. MongoDB refuses an empty list. */
async function writeEach<Document extends mongo.Document>(
  documents: mongo.Collection<Document>,
  writes: mongo.AnyBulkWriteOperation<Document>[],
): Promise<number> {
  if (writes.length === 0) return 0;
  return (await documents.bulkWrite(writes, { ordered: false })).matchedCount;
}

export function withoutUndefined<Fields extends object>(fields: Fields): Fields {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as Fields;
}
