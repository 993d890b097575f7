import { eventTypeIdOf, SCHEMA_VERSIONS_KEPT } from '@posthorn/domain/event-type-fields.ts';
import mongoose, { type mongo } from 'mongoose';
import { type Changed, type CompanyDocuments, documentsOf } from '../company-documents.ts';
import type { EventTypeDocument } from '../documents.ts';
import { duplicatesOf } from '../messages/stats-documents.ts';
import { readInParts } from '../read-in-parts.ts';

/** An event type without its largest fields, as lists have it. */
export type ListedEventType = Omit<EventTypeDocument, 'schema' | 'example'>;

export interface EventTypePage {
  projectId: string;
  group?: string | undefined;
  /** Undefined for those that are archived and those that are not. */
  archived?: boolean | undefined;
  skip: number;
  limit: number;
}

/** Undefined for those that are archived and those that are not. */
export type WholeCatalogue = Pick<EventTypePage, 'projectId' | 'archived'>;

type EventTypeChanges = Partial<Omit<EventTypeDocument, '_id' | 'companyId'>>;

/** Changes of an event type as it was seen. */
export interface EventTypeUpdate {
  seen: EventTypeDocument;
  changes: EventTypeChanges & { updatedAt: Date };
}

/** The catalogues of projects: their event types, and the earlier schemas of these. */
export interface EventTypeStore {
  /** Returns false when the project has one with this name. */
  insert: (eventType: EventTypeDocument) => Promise<boolean>;
  /** Inserts event types of one project in one write. Returns those whose names the project has already, which stay as they are. */
  insertEach: (
    companyId: string,
    eventTypes: readonly EventTypeDocument[],
  ) => Promise<readonly EventTypeDocument[]>;
  find: (companyId: string, id: string) => Promise<EventTypeDocument | null>;
  /** Of at most some dozens: each has up to 83 kB. */
  findEach: (companyId: string, ids: readonly string[]) => Promise<EventTypeDocument[]>;
  /** Returns an earlier schema, which may be null; undefined when it is not kept. */
  findSchema: (eventType: EventTypeDocument, version: number) => Promise<string | null | undefined>;
  /** In parts, by name. */
  list: (companyId: string, page: EventTypePage) => AsyncIterable<ListedEventType[]>;
  /** Whole, in parts, by name. */
  readAll: (companyId: string, which: WholeCatalogue) => AsyncIterable<EventTypeDocument[]>;
  /** Counts the event types of a project, up to `limit`. */
  count: (companyId: string, projectId: string, limit: number) => Promise<number>;
  /**
   * Applies the changes to the event type as `seen`, and keeps its schema when they have another `schemaVersion`. Null when
   * it was changed or deleted meanwhile.
   */
  update: (
    seen: EventTypeDocument,
    changes: EventTypeChanges,
  ) => Promise<Changed<EventTypeDocument> | null>;
  /** Does what `update` does for each, in as many writes as for one. Returns the ids of those that were not changed by it. */
  updateEach: (
    companyId: string,
    updates: readonly EventTypeUpdate[],
  ) => Promise<ReadonlySet<string>>;
  /** Removes the event type and its earlier schemas. Returns whether it was there. */
  remove: (eventType: EventTypeDocument) => Promise<boolean>;
  /** Returns which of the names are those of event types that are not archived. */
  knownAmong: (
    companyId: string,
    projectId: string,
    names: readonly string[],
  ) => Promise<ReadonlySet<string>>;
  /** Whether the name of an event type that is not archived begins like this and has more. */
  hasBeginning: (companyId: string, projectId: string, beginning: string) => Promise<boolean>;
}

/** An entry of a list has up to 17 kB, in its description. */
const PARTS = { batch: 48, part: 12 };
/** With schema and example it has up to 83 kB. */
const WHOLE_PARTS = { batch: 12, part: 3 };
const WITHOUT_LARGE = { schema: 0, example: 0 } as const;
const DUPLICATE_KEY = 11_000;

/** The event types of a project, and the documents of their earlier schemas: their ids begin with that of the project. */
export function catalogueOf(projectId: string) {
  return { _id: { $gte: `${projectId}/`, $lt: `${projectId}0` } };
}

export function createEventTypeStore(db: mongo.Db): EventTypeStore {
  const typesOf = (companyId: string) => documentsOf(db, 'eventTypes', companyId);
  return {
    insert: (eventType) => insertOne(db, eventType),
    insertEach: (companyId, eventTypes) => insertEach(db, companyId, eventTypes),
    find: (companyId, _id) => typesOf(companyId).findOne({ _id }),
    findEach: (companyId, ids) =>
      typesOf(companyId)
        .find({ _id: { $in: [...ids] } })
        .toArray(),
    async findSchema({ _id, companyId, schema, schemaVersion }, version) {
      if (version === schemaVersion) return schema;
      if (version <= schemaVersion - SCHEMA_VERSIONS_KEPT) return undefined;
      const versions = documentsOf(db, 'eventTypeVersions', companyId);
      return (await versions.findOne({ _id: versionIdOf(_id, version) }))?.schema;
    },
    list(companyId, { projectId, group, archived, skip, limit }) {
      const filter = {
        ...catalogueOf(projectId),
        ...(group !== undefined && { group }),
        ...(archived !== undefined && { archived }),
      };
      const found = typesOf(companyId).find(filter).sort({ _id: 1 }).skip(skip).limit(limit);
      return readInParts(found.project<ListedEventType>(WITHOUT_LARGE), PARTS);
    },
    readAll: (companyId, which) => readWhole(db, companyId, which),
    count: (companyId, projectId, limit) =>
      typesOf(companyId).count(catalogueOf(projectId), { limit }),
    update: (seen, changes) => updateOne(db, seen, changes),
    updateEach: (companyId, updates) => updateEach(db, companyId, updates),
    async remove(eventType) {
      const { _id, companyId } = eventType;
      await removeVersions(db, eventType);
      return (await typesOf(companyId).deleteMany({ _id })) === 1;
    },
    async knownAmong(companyId, projectId, names) {
      const ids = names.map((name) => eventTypeIdOf(projectId, name));
      const found = typesOf(companyId).find({ _id: { $in: ids }, archived: false });
      const known = await found.project<{ name: string }>({ name: 1 }).toArray();
      return new Set(known.map(({ name }) => name));
    },
    async hasBeginning(companyId, projectId, beginning) {
      const id = eventTypeIdOf(projectId, beginning);
      // No character of a name is above this one.
      const _id = { $gt: id, $lt: `${id}~` };
      return (await typesOf(companyId).count({ _id, archived: false }, { limit: 1 })) > 0;
    },
  };
}

function ignoreDuplicate(error: unknown): void {
  if (!isDuplicate(error)) throw error;
}

const isDuplicate = (error: unknown): boolean =>
  error instanceof mongoose.mongo.MongoServerError && error.code === DUPLICATE_KEY;

async function insertOne(db: mongo.Db, eventType: EventTypeDocument): Promise<boolean> {
  try {
    await documentsOf(db, 'eventTypes', eventType.companyId).insert(eventType);
    // An update that ran while an earlier one of this name was removed may have left some.
    await removeVersions(db, eventType);
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

async function insertEach(
  db: mongo.Db,
  companyId: string,
  eventTypes: readonly EventTypeDocument[],
): Promise<readonly EventTypeDocument[]> {
  const { insertEach: insert } = documentsOf(db, 'eventTypes', companyId);
  const known = await duplicatesOf(eventTypes, insert);
  const inserted = eventTypes.filter((each) => !known.includes(each));
  await documentsOf(db, 'eventTypeVersions', companyId).deleteEach(inserted.map(versionsOf));
  return known;
}

function readWhole(
  db: mongo.Db,
  companyId: string,
  { projectId, archived }: WholeCatalogue,
): AsyncIterable<EventTypeDocument[]> {
  const filter = { ...catalogueOf(projectId), ...(archived !== undefined && { archived }) };
  const found = documentsOf(db, 'eventTypes', companyId).find(filter).sort({ _id: 1 });
  return readInParts(found, WHOLE_PARTS);
}

const versionIdOf = (id: string, version: number): string => `${id}/${version}`;

/** The earlier schema is stored first: a process that ends between the writes leaves one more that nobody asks for. */
async function updateOne(
  db: mongo.Db,
  seen: EventTypeDocument,
  changes: EventTypeChanges,
): Promise<Changed<EventTypeDocument> | null> {
  const { _id, companyId, schemaVersion, updatedAt } = seen;
  const { schemaVersion: next = schemaVersion } = changes;
  const versions = documentsOf(db, 'eventTypeVersions', companyId);
  if (next !== schemaVersion) {
    const { filter, update } = keptVersion(seen);
    await versions
      .upsertOne(filter, update)
      // Another process stores the same schema: an update with another `updatedAt` changes nothing below.
      .catch(ignoreDuplicate);
  }
  const changed = await documentsOf(db, 'eventTypes', companyId).setOne(
    { _id, updatedAt },
    changes,
  );
  if (changed && next !== schemaVersion) {
    await versions.deleteMany(forgottenVersions(seen, next));
  }
  return changed;
}

/** The writes of `updateOne` in the same order, each for all event types. */
async function updateEach(
  db: mongo.Db,
  companyId: string,
  updates: readonly EventTypeUpdate[],
): Promise<ReadonlySet<string>> {
  const versions = documentsOf(db, 'eventTypeVersions', companyId);
  const types = documentsOf(db, 'eventTypes', companyId);
  const withNewSchema = updates.filter(({ seen, changes: { schemaVersion } }) => {
    return schemaVersion !== undefined && schemaVersion !== seen.schemaVersion;
  });
  await duplicatesOf(withNewSchema, (some) =>
    versions.updateEach(some.map(({ seen }) => ({ ...keptVersion(seen), upsert: true }))),
  );
  const matched = await types.updateEach(
    updates.map(({ seen: { _id, updatedAt }, changes }) => {
      return { filter: { _id, updatedAt }, update: { $set: changes } };
    }),
  );
  const missed = matched === updates.length ? new Set<string>() : await missedOf(types, updates);
  const forgotten = withNewSchema
    .filter(({ seen }) => !missed.has(seen._id))
    .map(({ seen, changes: { schemaVersion = 1 } }) => forgottenVersions(seen, schemaVersion));
  await versions.deleteEach(forgotten);
  return missed;
}

/** Returns the ids of the event types that are not as an update has left them. */
async function missedOf(
  types: CompanyDocuments<'eventTypes'>,
  updates: readonly EventTypeUpdate[],
): Promise<Set<string>> {
  const ids = updates.map(({ seen }) => seen._id);
  const found = await types
    .find({ _id: { $in: ids } })
    .project<Pick<EventTypeDocument, '_id' | 'updatedAt'>>({ updatedAt: 1 })
    .toArray();
  const times = new Map(found.map(({ _id, updatedAt }) => [_id, updatedAt.getTime()]));
  const missed = updates.filter(({ seen, changes }) => {
    return times.get(seen._id) !== changes.updatedAt.getTime();
  });
  return new Set(missed.map(({ seen }) => seen._id));
}

/** Stores the schema of an event type as that of its version. */
function keptVersion({ _id, projectId, name, schemaVersion, schema }: EventTypeDocument) {
  const version = { projectId, name, version: schemaVersion, schema };
  return { filter: { _id: versionIdOf(_id, schemaVersion) }, update: { $set: version } };
}

const forgottenVersions = (eventType: EventTypeDocument, newest: number) => ({
  ...versionsOf(eventType),
  version: { $lte: newest - SCHEMA_VERSIONS_KEPT },
});

async function removeVersions(db: mongo.Db, eventType: EventTypeDocument): Promise<void> {
  const versions = documentsOf(db, 'eventTypeVersions', eventType.companyId);
  await versions.deleteMany(versionsOf(eventType));
}

/** The range of ids has also those of an event type whose name goes on with `/`. */
const versionsOf = ({ _id, name }: EventTypeDocument) => ({ ...catalogueOf(_id), name });
