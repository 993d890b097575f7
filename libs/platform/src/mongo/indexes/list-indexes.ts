import type { mongo } from 'mongoose';
import type { FoundIndex } from './index-spec.ts';

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
