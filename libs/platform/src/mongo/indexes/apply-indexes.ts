import type { mongo } from 'mongoose';
import { TimeoutError, withTimeout } from '../../async/with-timeout.ts';
import { readAppliedIndexes, writeAppliedIndexes } from './applied-indexes.ts';
import {
  serves,
  versionOf,
  type FoundIndex,
  type IndexSpec,
  type RetiredIndex,
} from './index-spec.ts';
import { listIndexes } from './list-indexes.ts';
import { planIndexes, type NamedIndex } from './plan-indexes.ts';

export interface ApplyOptions {
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
 * Brings indexes to what `specs` says. First the unique ones, on which answers of the API depend; then the others,
 * all at once: those of one collection are built in one pass. A build goes on when this process ends or
 * loses its connection, and asking again waits for the same build, so this may be repeated at any point.
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

/** As operators and MongoDB's log name an index. */
export function placeOf({ collection, name }: { collection: string; name: string }): string {
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
