/** The broker's errors for one record, and for the batch that kafkajs makes of the records of a request. */
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/** Returns true when a broker refused records for their size; sending them again cannot succeed. */
export function isRecordTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('type' in error && TOO_LARGE.has(String(error.type))) || isRecordTooLarge(error.cause);
}
