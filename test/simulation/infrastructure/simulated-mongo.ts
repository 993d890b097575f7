import mongoose, { type mongo } from 'mongoose';
import { DUPLICATE_KEY } from '@posthorn/platform/mongo/connection/duplicate-key.ts';
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
  connectedTo: (process: Pick<SimulatedProcess, 'request'>) => mongo.Db;
}

type OnWrite = (name: string, before: StoredDocument | undefined, after: StoredDocument) => void;

export function createSimulatedMongo(onWrite: OnWrite): SimulatedMongo {
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
      const clientCollection = (name: string): object =>
        createCollection({ name, documents: collection(name), write, process });
      // It has only the members that the stores use; the driver has no smaller type.
      return { collection: clientCollection } as unknown as mongo.Db;
    },
  };
}

type Write = (name: string, document: StoredDocument) => void;

interface CollectionDeps {
  name: string;
  documents: Collection;
  write: Write;
  process: Pick<SimulatedProcess, 'request'>;
}

interface UpdateOne {
  filter: Fields;
  update: Update;
  arrayFilters?: Fields[];
}

function createCollection(deps: CollectionDeps): object {
  return {
    insertMany: (batch: readonly StoredDocument[]) => insertMany(deps, batch),
    bulkWrite: (operations: readonly { updateOne: UpdateOne }[]) =>
      updateAll(
        deps,
        operations.map(({ updateOne }) => updateOne),
      ),
    updateOne: (filter: Fields, update: Update) => updateAll(deps, [{ filter, update }]),
    find: (filter: Fields) => find(deps, filter),
  };
}

function insertMany(
  { name, documents, write, process }: CollectionDeps,
  batch: readonly StoredDocument[],
): Promise<void> {
  const refused: number[] = [];
  return process.request({
    what: `insert ${batch.length} ${name}`,
    effects: batch.map((document, index) => () => {
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
  { name, documents, write, process }: CollectionDeps,
  operations: readonly UpdateOne[],
): Promise<{ matchedCount: number }> {
  let matchedCount = 0;
  return process.request({
    what: `update ${operations.length} ${name}`,
    effects: operations.map(({ filter, update, arrayFilters }) => () => {
      const [found] = select(documents, filter);
      if (!found) return;
      matchedCount += 1;
      write(name, applyUpdate(found, update, arrayFilters));
    }),
    respond: () => ({ matchedCount }),
    noResponse,
  });
}

/** Returns a cursor with the methods that the stores use. */
function find({ name, documents, process }: CollectionDeps, filter: Fields): object {
  let isSorted = false;
  let firstIndex = 0;
  let maxCount = Infinity;
  let project: (document: StoredDocument) => StoredDocument = (document) => document;
  const cursor = {
    sort: () => {
      isSorted = true;
      return cursor;
    },
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
        effects: [() => (found = select(documents, filter))],
        respond: () =>
          (isSorted ? byId(found) : found).slice(firstIndex, firstIndex + maxCount).map(project),
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

function byId(documents: readonly StoredDocument[]): StoredDocument[] {
  return [...documents].sort((a, b) => (a._id < b._id ? -1 : 1));
}
