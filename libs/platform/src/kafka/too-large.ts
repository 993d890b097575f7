/** Of the record, and of the batch that a broker makes of what was sent at once. */
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/** True when a broker refused what was sent for its size; sending it again cannot help. */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isRefusal = 'type' in error && TOO_LARGE.has(String(error.type));
  return isRefusal || isTooLarge(error.cause);
}
