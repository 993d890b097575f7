/** The server's error code of a write that a unique index refuses (MongoDB, Error Codes). */
export const DUPLICATE_KEY = 11_000;

/** Returns whether a single write was refused because of a unique index. A bulk write has an error for each document. */
export function isDuplicateKey(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === DUPLICATE_KEY;
}
