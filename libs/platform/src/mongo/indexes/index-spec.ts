import { createHash } from 'node:crypto';
import type { mongo } from 'mongoose';

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
export function serves(found: FoundIndex, { key, options = {} }: IndexSpec): boolean {
  return identityOf(found.key, found) === identityOf(key, options);
}

/** Returns a name for an index whose default name another index of the same key has. */
export function ownName({ key, options = {} }: IndexSpec): string {
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
