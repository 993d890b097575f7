import mongoose, { type mongo } from 'mongoose';
import { DUPLICATE_KEY } from '@posthorn/platform/mongo/duplicate-key.ts';
import { matches, updated, type Fields, type StoredDocument, type Update } from './mongo-filter.ts';
import type { SimulatedProcess } from './simulated-process.ts';

export type Collection = Map<string, StoredDocument>;

/** Collections in memory; each document changes in one step, a batch in as many as it has documents. */
export interface SimulatedMongo {
  of: (name: string) => Collection;
  /** The database as one process reaches it; the real stores run on it, with their real filters. */
  reachedBy: (process: SimulatedProcess) => mongo.Db;
}

type OnWrite = (name: string, before: StoredDocument | undefined, after: StoredDocument) => void;

export function createSimulatedMongo(onWrite: OnWrite): SimulatedMongo {
  const collections = new Map<string, Collection>();
  const of = (name: string): Collection => {
    const found = collections.get(name) ?? new Map<string, StoredDocument>();
    collections.set(name, found);
    return found;
  };
  const write: Write = (name, document) => {
    const before = of(name).get(document._id);
    of(name).set(document._id, document);
    onWrite(name, before, document);
  };
  return {
    of,
    reachedBy(process) {
      const collection = (name: string): object =>
        createCollection({ name, documents: of(name), write, process });
      // The members that the stores use; the driver has no smaller type for them.
      return { collection } as unknown as mongo.Db;
    },
  };
}

type Write = (name: string, document: StoredDocument) => void;

interface Reached {
  name: string;
  documents: Collection;
  write: Write;
  process: SimulatedProcess;
}

interface UpdateOne {
  filter: Fields;
  update: Update;
  arrayFilters?: Fields[];
}

function createCollection(reached: Reached): object {
  return {
    insertMany: (batch: readonly StoredDocument[]) => insertMany(reached, batch),
    bulkWrite: (operations: readonly { updateOne: UpdateOne }[]) =>
      updateAll(
        reached,
        operations.map(({ updateOne }) => updateOne),
      ),
    updateOne: (filter: Fields, update: Update) => updateAll(reached, [{ filter, update }]),
    find: (filter: Fields) => find(reached, filter),
  };
}

function insertMany(
  { name, documents, write, process }: Reached,
  batch: readonly StoredDocument[],
): Promise<void> {
  const refused: number[] = [];
  return process.request({
    what: `insert ${batch.length} ${name}`,
    parts: batch.map((document, index) => () => {
      if (documents.has(document._id)) refused.push(index);
      else write(name, { ...document });
    }),
    answer: () => {
      if (refused.length > 0) throw duplicates(refused, batch.length);
    },
    lost,
  });
}

function duplicates(indexes: readonly number[], size: number): Error {
  const writeErrors = indexes.map((index) => ({ index, code: DUPLICATE_KEY, errmsg: '_id' }));
  const result = { getWriteConcernError: () => undefined, insertedCount: size - indexes.length };
  const error = { message: 'E11000 duplicate key', code: DUPLICATE_KEY, writeErrors };
  const Refusal = mongoose.mongo.MongoBulkWriteError;
  return new Refusal(error as never, result as never);
}

function lost(): Error {
  return new mongoose.mongo.MongoNetworkError('nobody answered');
}

function updateAll(
  { name, documents, write, process }: Reached,
  operations: readonly UpdateOne[],
): Promise<{ matchedCount: number }> {
  let matchedCount = 0;
  return process.request({
    what: `update ${operations.length} ${name}`,
    parts: operations.map(({ filter, update, arrayFilters }) => () => {
      const [found] = select(documents, filter);
      if (!found) return;
      matchedCount += 1;
      write(name, updated(found, update, arrayFilters));
    }),
    answer: () => ({ matchedCount }),
    lost,
  });
}

/** A cursor as the stores use it: narrowed first, read once. */
function find({ name, documents, process }: Reached, filter: Fields): object {
  let isSorted = false;
  let most = Infinity;
  let attempts = -Infinity;
  const cursor = {
    sort: () => {
      isSorted = true;
      return cursor;
    },
    limit: (count: number) => {
      most = count;
      return cursor;
    },
    project: (fields: { attempts?: { $slice: number } }) => {
      attempts = fields.attempts?.$slice ?? attempts;
      return cursor;
    },
    toArray: () => {
      let found: StoredDocument[] = [];
      return process.request({
        what: `read ${name}`,
        parts: [() => (found = select(documents, filter))],
        answer: () => (isSorted ? byId(found) : found).slice(0, most).map(lastOf(attempts)),
        lost,
      });
    },
  };
  return cursor;
}

function select(documents: Collection, filter: Fields): StoredDocument[] {
  const { _id: id } = filter;
  const few = typeof id === 'string' ? [id] : (id as { $in?: string[] } | undefined)?.$in;
  const candidates = few ? few.flatMap((each) => documents.get(each) ?? []) : documents.values();
  return [...new Set(candidates)].filter((document) => matches(document, filter));
}

function byId(documents: readonly StoredDocument[]): StoredDocument[] {
  return [...documents].sort((a, b) => (a._id < b._id ? -1 : 1));
}

function lastOf(count: number): (document: StoredDocument) => StoredDocument {
  return ({ attempts, ...rest }) =>
    Array.isArray(attempts) ? { ...rest, attempts: attempts.slice(count) } : rest;
}
