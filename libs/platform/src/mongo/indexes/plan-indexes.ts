import {
  defaultName,
  ownName,
  serves,
  type FoundIndex,
  type IndexSpec,
  type RetiredIndex,
} from './index-spec.ts';

export interface NamedIndex extends IndexSpec {
  name: string;
}

export interface PlacedIndex {
  collection: string;
  name: string;
}

export interface IndexPlan {
  /** Missing ones, and those that are built at the moment: to ask for one again waits for it. */
  toCreate: NamedIndex[];
  /** Indexes with another time of expiry. */
  toResize: (PlacedIndex & { expireAfterSeconds: number })[];
  /** Indexes of earlier versions. They stay until everything that replaces them is ready. */
  toDrop: PlacedIndex[];
}

/**
 * Compares the indexes that must exist with those that do, by collection. An index that somebody else has
 * made is left alone, unless it has the key of one of ours with other options: then ours replaces it.
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
