import mongoose, { type mongo } from 'mongoose';
import { dayName, dayNumberOf, timeMsOf } from '@posthorn/domain/ids.ts';
import type { DayLayout } from '@posthorn/platform/mongo/days/daily-collection.ts';
import { withDays, type Database } from '@posthorn/platform/mongo/days/days.ts';
import { DUPLICATE_KEY } from '@posthorn/platform/mongo/connect.ts';
import {
  applyUpdate,
  matches,
  projectionOf,
  type Fields,
  type Projection,
  type StoredDocument,
  type Update,
} from './mongo-query.ts';
import type { SimulatedProcess } from './simulated-process.ts';

export type Collection = Map<string, StoredDocument>;

/** Collections in memory. Documents change one by one, so that other processes may run between those of a batch. */
export interface SimulatedMongo {
  /** Returns the documents of a collection by id. */
  collection: (name: string) => Collection;
  /** Returns the database for one process. The real stores run on it, with their real filters and updates. */
  connectedTo: (process: Client) => Database;
}

type Client = Pick<SimulatedProcess, 'request' | 'nowMs'>;

type OnWrite = (name: string, before: StoredDocument | undefined, after: StoredDocument) => void;

/** All documents of a kind are in one map; each collection shows those that belong to it. */
export function createSimulatedMongo(
  onWrite: OnWrite,
  layout: DayLayout = { beginMs: 0, retentionMs: Infinity },
): SimulatedMongo {
  const collections = new Map<string, Collection>();
  const collection = (name: string): Collection => {
    const found = collections.get(name) ?? new Map<string, StoredDocument>();
    collections.set(name, found);
    return found;
  };
  const write: Write = (name, document) => {
    const before = collection(name).get(document._id);
    collection(name).set(document._id, document);
    onWrite(name, before, document);
  };
  return {
    collection,
    connectedTo(process) {
      const open = (name: string, holds: (id: string) => boolean): object =>
        createCollection({ name, documents: collection(name), holds, write, process });
      const undivided = (name: string): object => open(name, () => true);
      const dayOf = (kind: string) => (name: string) =>
        open(kind, (id) => dayName(dayNumberOf(timeMsOf(id))) === name);
      const client = { db: (name: string) => ({ collection: dayOf(name.slice(PREFIX.length)) }) };
      // It has only the members that the stores use; the driver has no smaller type.
      const db = { databaseName: '', collection: undivided, client } as unknown as mongo.Db;
      const { nowMs } = process;
      return withDays(db, { layout: () => layout, nowMs, earlierMs: nowMs });
    },
  };
}

/** The databases of days have names that end in their kind. */
const PREFIX = '_';

type Write = (name: string, document: StoredDocument) => void;

interface CollectionDeps {
  name: string;
  documents: Collection;
  /** Whether a document of this id belongs to the collection. */
  holds: (id: string) => boolean;
  write: Write;
  process: Pick<SimulatedProcess, 'request'>;
}

interface UpdateOne {
  filter: Fields;
  update: Update;
  arrayFilters?: Fields[];
  /** Makes the document when the filter, which then names its id, matches none. */
  upsert?: boolean;
}

function createCollection(deps: CollectionDeps): object {
  return {
    insertMany: (batch: readonly StoredDocument[], { ordered = true } = {}) =>
      insertMany(deps, batch, ordered),
    bulkWrite: (operations: readonly { updateOne: UpdateOne }[]) =>
      updateAll(
        deps,
        operations.map(({ updateOne }) => updateOne),
      ),
    updateOne: (filter: Fields, update: Update) => updateAll(deps, [{ filter, update }]),
    updateMany: (filter: Fields, update: Update) => updateMany(deps, filter, update),
    deleteOne: (filter: Fields) => deleteOne(deps, filter),
    find: (filter: Fields) => find(deps, filter),
  };
}

function insertMany(
  { name, documents, holds, write, process }: CollectionDeps,
  batch: readonly StoredDocument[],
  isOrdered: boolean,
): Promise<void> {
  const misplaced = batch.find(({ _id }) => !holds(_id));
  if (misplaced) throw new Error(`${misplaced._id} does not belong to this collection of ${name}`);
  const refused: number[] = [];
  return process.request({
    what: `insert ${batch.length} ${name}`,
    areOrdered: isOrdered,
    effects: batch.map((document, index) => () => {
      if (isOrdered && refused.length > 0) return;
      if (documents.has(document._id)) refused.push(index);
      else write(name, { ...document });
    }),
    respond: () => {
      if (refused.length > 0) throw duplicates(refused, batch.length);
    },
    noResponse,
  });
}

function duplicates(indexes: readonly number[], size: number): Error {
  const writeErrors = indexes.map((index) => ({ index, code: DUPLICATE_KEY, errmsg: '_id' }));
  const result = { getWriteConcernError: () => undefined, insertedCount: size - indexes.length };
  const error = { message: 'E11000 duplicate key', code: DUPLICATE_KEY, writeErrors };
  const Refusal = mongoose.mongo.MongoBulkWriteError;
  return new Refusal(error as never, result as never);
}

function noResponse(): Error {
  return new mongoose.mongo.MongoNetworkError('connection closed');
}

function updateAll(
  { name, documents, holds, write, process }: CollectionDeps,
  operations: readonly UpdateOne[],
): Promise<{ matchedCount: number }> {
  let matchedCount = 0;
  return process.request({
    what: `update ${operations.length} ${name}`,
    effects: operations.map(({ filter, update, arrayFilters, upsert }) => () => {
      const [found] = select(documents, filter).filter(({ _id }) => holds(_id));
      if (!found && upsert) write(name, madeBy(filter, update));
      if (!found) return;
      matchedCount += 1;
      write(name, applyUpdate(found, update, arrayFilters));
    }),
    respond: () => ({ matchedCount }),
    noResponse,
  });
}

function madeBy({ _id }: Fields, update: Update): StoredDocument {
  return applyUpdate({ ...update.$setOnInsert, _id: String(_id) }, update);
}

function updateMany(deps: CollectionDeps, filter: Fields, update: Update): Promise<unknown> {
  const { documents, holds } = deps;
  const found = select(documents, filter).filter(({ _id }) => holds(_id));
  // Each of them may have changed when its write takes effect.
  return updateAll(
    deps,
    found.map(({ _id }) => ({ filter: { ...filter, _id }, update })),
  );
}

function deleteOne(
  { name, documents, process }: CollectionDeps,
  filter: Fields,
): Promise<{ deletedCount: number }> {
  let deletedCount = 0;
  return process.request({
    what: `delete of ${name}`,
    effects: [
      () => {
        const [found] = select(documents, filter);
        if (found && documents.delete(found._id)) deletedCount += 1;
      },
    ],
    respond: () => ({ deletedCount }),
    noResponse,
  });
}

/** Returns a cursor with the methods that the stores use. */
function find({ name, documents, holds, process }: CollectionDeps, filter: Fields): object {
  let inOrder = (found: StoredDocument[]): StoredDocument[] => found;
  let firstIndex = 0;
  let maxCount = Infinity;
  let project: (document: StoredDocument) => StoredDocument = (document) => document;
  const cursor = {
    sort: (keys: Record<string, 1 | -1>) => {
      inOrder = (found) => sorted(found, keys);
      return cursor;
    },
    hint: () => cursor,
    skip: (count: number) => {
      firstIndex = count;
      return cursor;
    },
    limit: (count: number) => {
      maxCount = count;
      return cursor;
    },
    project: (fields: Projection) => {
      project = projectionOf(fields);
      return cursor;
    },
    toArray: () => {
      let found: StoredDocument[] = [];
      return process.request({
        what: `read ${name}`,
        effects: [() => (found = select(documents, filter).filter(({ _id }) => holds(_id)))],
        respond: () =>
          inOrder(found)
            .slice(firstIndex, firstIndex + maxCount)
            .map(project),
        noResponse,
      });
    },
  };
  return cursor;
}

function select(documents: Collection, filter: Fields): StoredDocument[] {
  const { _id: id } = filter;
  const ids = typeof id === 'string' ? [id] : (id as { $in?: string[] } | undefined)?.$in;
  const candidates = ids ? ids.flatMap((each) => documents.get(each) ?? []) : documents.values();
  return [...new Set(candidates)].filter((document) => matches(document, filter));
}

function sorted(
  documents: readonly StoredDocument[],
  keys: Record<string, 1 | -1>,
): StoredDocument[] {
  return documents.toSorted((a, b) => {
    for (const [key, direction] of Object.entries(keys)) {
      const [left, right] = [a[key] as number, b[key] as number];
      if (left < right) return -direction;
      if (left > right) return direction;
    }
    return 0;
  });
}
