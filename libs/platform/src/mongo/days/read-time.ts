import type { mongo } from 'mongoose';

/**
 * Returns the same database, whose reads end in MongoDB when they have worked for so long: find, findOne, aggregate and
 * countDocuments. A read that is ended fails as if MongoDB were away. Without it, MongoDB goes on with what nobody waits
 * for, and a client that repeats its request adds to that. The driver's own `timeoutMS` is not used: it also counts the
 * time in which a long list waits for its client, and closes the connection.
 */
export function withReadTime(db: mongo.Db, maxTimeMS: number): mongo.Db {
  const bounded = Object.create(db) as mongo.Db;
  bounded.collection = (name, options) =>
    boundedReads<never>(db.collection<never>(name, options), maxTimeMS) as never;
  return bounded;
}

function boundedReads<Document extends mongo.Document>(
  documents: mongo.Collection<Document>,
  maxTimeMS: number,
): mongo.Collection<Document> {
  // findOne and countDocuments of the driver call these two.
  const bounded = Object.create(documents) as mongo.Collection<Document>;
  bounded.find = (filter: mongo.Filter<Document> = {}, options: mongo.FindOptions = {}) =>
    documents.find<never>(filter, { maxTimeMS, ...options });
  bounded.aggregate = (pipeline?: mongo.Document[], options?: mongo.AggregateOptions) =>
    documents.aggregate<never>(pipeline, { maxTimeMS, ...options });
  return bounded;
}
