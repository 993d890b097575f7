import type { mongo } from 'mongoose';
import { createHash } from 'node:crypto';
import { pause, TimeoutError, withTimeout } from '../async/pause.ts';
import { StartupError } from '../service/errors.ts';
import type { ServiceContext } from '../service/run-service.ts';
import { collection } from './collections.ts';

interface ApplyOptions {
  retired?: readonly RetiredIndex[];
  /** How long to wait for indexes that only speed up queries, in milliseconds. MongoDB builds them on. */
  waitMs: number;
}

export interface AppliedResult {
  /** `collection.name` of the indexes that MongoDB still builds. */
  building: string[];
  /** `collection.name` of the indexes of earlier versions that are gone. */
  dropped: string[];
}

/**
 * Brings indexes to what `specs` says. First the unique ones, on which responses of the API depend; then the others,
 * all at once: those of one collection are built in one pass. A build goes on when this process ends or
 * loses its connection, and another call waits for the same build, so this may be repeated at any point.
 */
export async function applyIndexes(
  db: mongo.Db,
  specs: readonly IndexSpec[],
  { retired = [], waitMs }: ApplyOptions,
): Promise<AppliedResult> {
  const version = versionOf(specs, retired);
  const found = await findIndexes(db, specs);
  const { toCreate, toResize, toDrop } = planIndexes(specs, found, retired);
  for (const { collection, ...index } of toResize) await db.command({ collMod: collection, index });
  const earlier = (await readAppliedIndexes(db))?.pending ?? [];
  const pending = new Set(notReady(toCreate, found, earlier).map(placeOf));
  const note = (): Promise<void> => writeAppliedIndexes(db, { version, pending: [...pending] });
  await note();
  const build = async (indexes: readonly NamedIndex[]): Promise<void> => {
    await Promise.all(byCollection(indexes).map((each) => buildOne(db, each)));
    for (const index of indexes) pending.delete(placeOf(index));
  };
  await build(toCreate.filter(isUnique));
  await note();
  const building = build(toCreate.filter((index) => !isUnique(index)));
  if (!(await isDoneWithin(building, waitMs))) return { building: [...pending], dropped: [] };
  for (const { collection, name } of toDrop) await db.collection(collection).dropIndex(name);
  await note();
  return { building: [], dropped: toDrop.map(placeOf) };
}

/**
 * Returns the indexes that are not known to be ready. One that exists is ready unless an earlier run noted
 * that it was being built: services would not start beside a run that ends early otherwise.
 */
function notReady(
  wanted: readonly NamedIndex[],
  found: ReadonlyMap<string, readonly FoundIndex[]>,
  earlier: readonly string[],
): NamedIndex[] {
  return wanted.filter((index) => {
    const exists = found.get(index.collection)?.some((each) => serves(each, index)) === true;
    return !exists || earlier.includes(placeOf(index));
  });
}

const isUnique = ({ options }: IndexSpec): boolean => options?.unique === true;

/** Names an index as operators and MongoDB's log do. */
function placeOf({ collection, name }: { collection: string; name: string }): string {
  return `${collection}.${name}`;
}

async function findIndexes(
  db: mongo.Db,
  specs: readonly IndexSpec[],
): Promise<Map<string, FoundIndex[]>> {
  const found = new Map<string, FoundIndex[]>();
  for (const name of new Set(specs.map(({ collection }) => collection))) {
    found.set(name, await listIndexes(db, name));
  }
  return found;
}

interface CollectionIndexes {
  collection: string;
  indexes: NamedIndex[];
}

function byCollection(indexes: readonly NamedIndex[]): CollectionIndexes[] {
  const groups = Map.groupBy(indexes, ({ collection }) => collection);
  return [...groups].map(([collection, ofCollection]) => ({ collection, indexes: ofCollection }));
}

async function buildOne(db: mongo.Db, { collection, indexes }: CollectionIndexes): Promise<void> {
  await db
    .collection(collection)
    .createIndexes(indexes.map(({ key, name, options }) => ({ ...options, key, name })));
}

/** Returns false when the time is over. Rejects when the work does before that. */
async function isDoneWithin(work: Promise<void>, ms: number): Promise<boolean> {
  try {
    await withTimeout(work, ms);
    return true;
  } catch (error) {
    if (!(error instanceof TimeoutError)) throw error;
    // Its connection is closed while it waits; MongoDB goes on.
    work.catch(() => undefined);
    return false;
  }
}

interface NamedIndex extends IndexSpec {
  name: string;
}

interface PlacedIndex {
  collection: string;
  name: string;
}

interface IndexPlan {
  /** Missing ones, and those that are being built: creating one again waits for its build. */
  toCreate: NamedIndex[];
  /** Indexes with another time of expiry. */
  toResize: (PlacedIndex & { expireAfterSeconds: number })[];
  /** Indexes of earlier versions. They stay until everything that replaces them is ready. */
  toDrop: PlacedIndex[];
}

/**
 * Compares the indexes that must exist with those that do, by collection. An index of another owner stays,
 * unless it has the key of one of ours with other options: then ours replaces it.
 */
export function planIndexes(
  wanted: readonly IndexSpec[],
  existing: ReadonlyMap<string, readonly FoundIndex[]>,
  retired: readonly RetiredIndex[] = [],
): IndexPlan {
  const of = (collection: string): readonly FoundIndex[] => existing.get(collection) ?? [];
  const toResize = wanted.flatMap((spec) => resizing(spec, of(spec.collection)));
  const changed = wanted.flatMap((spec) => replaced(spec, wanted, of(spec.collection)));
  const unwanted = retired.flatMap(({ collection, key }) =>
    of(collection)
      .filter((found) => defaultName(found.key) === defaultName(key))
      .filter((found) => !isWanted(found, collection, wanted))
      .map(({ name }) => ({ collection, name })),
  );
  return {
    toCreate: wanted.map((spec) => ({ ...spec, name: nameFor(spec, of(spec.collection)) })),
    toResize,
    toDrop: distinct([...changed, ...unwanted]),
  };
}

/** Names of indexes that exist are kept; the name of an index with other options is taken. */
function nameFor(spec: IndexSpec, found: readonly FoundIndex[]): string {
  const same = found.find((each) => serves(each, spec));
  if (same) return same.name;
  const name = defaultName(spec.key);
  return found.some((each) => each.name === name) ? ownName(spec) : name;
}

function resizing(spec: IndexSpec, found: readonly FoundIndex[]): IndexPlan['toResize'] {
  const expireAfterSeconds = spec.options?.expireAfterSeconds;
  if (expireAfterSeconds === undefined) return [];
  const same = found.find((each) => serves(each, spec));
  if (!same || same.expireAfterSeconds === expireAfterSeconds) return [];
  return [{ collection: spec.collection, name: same.name, expireAfterSeconds }];
}

function replaced(
  { collection, key }: IndexSpec,
  wanted: readonly IndexSpec[],
  found: readonly FoundIndex[],
): PlacedIndex[] {
  return found
    .filter((each) => defaultName(each.key) === defaultName(key))
    .filter((each) => !isWanted(each, collection, wanted))
    .map(({ name }) => ({ collection, name }));
}

const isWanted = (found: FoundIndex, collection: string, wanted: readonly IndexSpec[]): boolean =>
  wanted.some((spec) => spec.collection === collection && serves(found, spec));

function distinct(indexes: readonly PlacedIndex[]): PlacedIndex[] {
  return [...new Map(indexes.map((each) => [`${each.collection} ${each.name}`, each])).values()];
}

/** The result of create-indexes, for operators and for gateways. */
interface AppliedIndexes {
  /** The version of the indexes that were asked for last. */
  version: string;
  /** `collection.name` of the indexes that were asked for and were not known to be ready. */
  pending: string[];
}

const ID = 'indexes';

export async function writeAppliedIndexes(
  db: mongo.Db,
  { version, pending }: AppliedIndexes,
): Promise<void> {
  const fields = [{ $set: { version, pending, updatedAt: '$$NOW' } }];
  await collection(db, 'migrations').updateOne({ _id: ID }, fields, { upsert: true });
}

/** Returns null where no version that writes this has run. */
export async function readAppliedIndexes(db: mongo.Db): Promise<AppliedIndexes | null> {
  return collection(db, 'migrations').findOne({ _id: ID });
}

const EVERY_MS = 2_000;
const UNAUTHORIZED = 13;

/**
 * Resolves when every unique index among `specs` is ready; until then `/readyz` says which one is missing. Other
 * indexes only speed up queries, and are not waited for. Throws StartupError when a stop comes first. Where this
 * user may not list indexes it logs a warning and resolves.
 */
export async function awaitUniqueIndexes(
  { lifecycle, logger }: Pick<ServiceContext<object>, 'lifecycle' | 'logger'>,
  db: mongo.Db,
  specs: readonly IndexSpec[],
): Promise<void> {
  const check = (): Promise<string[]> =>
    findMissing(db, specs).catch((error: unknown) => {
      if (!hasCode(error, UNAUTHORIZED)) throw error;
      logger.warn(
        {},
        'cannot check the unique indexes: the MongoDB user lacks listIndexes (docs/security.md)',
      );
      return [];
    });
  let isLogged = false;
  for (let missing = await check(); missing.length > 0; missing = await check()) {
    const reason = `MongoDB has no unique index ${missing.join(', ')}, or has not finished it: run deploy/setup/create-indexes.ts`;
    lifecycle.waitFor(reason);
    if (!isLogged) logger.error({ missing }, reason);
    isLogged = true;
    await pause(EVERY_MS, lifecycle.stopping);
    if (lifecycle.stopping.aborted) throw new StartupError(reason);
  }
  lifecycle.waitFor(null);
}

/** Returns `collection.name` of the unique indexes that do not exist, or are being built. */
export async function findMissing(db: mongo.Db, specs: readonly IndexSpec[]): Promise<string[]> {
  const applied = await readAppliedIndexes(db);
  const pending = new Set(applied?.pending);
  const unique = specs.filter(({ options }) => options?.unique === true);
  const missing = unique.map(async (spec) => {
    const found = (await listIndexes(db, spec.collection)).find((each) => serves(each, spec));
    const place = placeOf({ ...spec, name: found?.name ?? defaultName(spec.key) });
    // MongoDB lists an index from the beginning of its build.
    return found && !pending.has(place) ? [] : [place];
  });
  return (await Promise.all(missing)).flat();
}

const NAMESPACE_NOT_FOUND = 26;

/** Returns the indexes of a collection, those that are being built among them; none when there is no such collection. */
export async function listIndexes(db: mongo.Db, collection: string): Promise<FoundIndex[]> {
  try {
    return (await db.collection(collection).indexes()) as FoundIndex[];
  } catch (error) {
    if (hasCode(error, NAMESPACE_NOT_FOUND)) return [];
    throw error;
  }
}

/** Returns true for an error of MongoDB with this code. */
export function hasCode(error: unknown, code: number): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** An index that a collection must have. */
export interface IndexSpec {
  collection: string;
  key: Record<string, 1 | -1>;
  options?: Pick<
    mongo.CreateIndexesOptions,
    'unique' | 'sparse' | 'partialFilterExpression' | 'expireAfterSeconds'
  >;
}

/** An index that an earlier version needed. */
export type RetiredIndex = Pick<IndexSpec, 'collection' | 'key'>;

/** An index as MongoDB lists it. */
export interface FoundIndex extends NonNullable<IndexSpec['options']> {
  name: string;
  key: Record<string, unknown>;
}

/** Returns the name that MongoDB gives to an index with this key. */
export function defaultName(key: Readonly<Record<string, unknown>>): string {
  return Object.entries(key).flat().join('_');
}

/** Returns true when the index has the key and the options of the spec. The time of its expiry may be another one. */
function serves(found: FoundIndex, { key, options = {} }: IndexSpec): boolean {
  return identityOf(found.key, found) === identityOf(key, options);
}

/** Returns a name for an index whose default name another index of the same key has. */
function ownName({ key, options = {} }: IndexSpec): string {
  const hash = createHash('sha256').update(identityOf(key, options)).digest('hex');
  return `${defaultName(key)}_${hash.slice(0, 8)}`;
}

function identityOf(key: object, options: NonNullable<IndexSpec['options']>): string {
  const { unique = false, sparse = false, partialFilterExpression = null } = options;
  return JSON.stringify([Object.entries(key), unique, sparse, partialFilterExpression]);
}

/** Returns a text that changes when an index is added, changed or retired, and not with a retention. */
export function versionOf(
  specs: readonly IndexSpec[],
  retired: readonly RetiredIndex[] = [],
): string {
  const wanted = specs.map((spec) => `${spec.collection} ${ownName(spec)}`).sort();
  const unwanted = retired.map(({ collection, key }) => `${collection} ${defaultName(key)}`).sort();
  const text = JSON.stringify([wanted, unwanted]);
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
