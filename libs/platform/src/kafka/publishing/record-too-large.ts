/** Errors for one record, and for the batch that a client makes of the records of a request. */
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/** Returns true when a broker refused records for their size; sending them again cannot succeed. */
export function isRecordTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return TOO_LARGE.has(refusalOf(error)) || reasonsOf(error).some(isRecordTooLarge);
}

/** Returns the name of the broker's error: kafkajs has it as `type`, @platformatic/kafka as `apiId`. */
function refusalOf(error: Error): string {
  if ('type' in error) return String(error.type);
  return 'apiId' in error ? String(error.apiId) : '';
}

/** @platformatic/kafka collects the errors of all partitions in one error. */
function reasonsOf(error: Error): unknown[] {
  return 'errors' in error && Array.isArray(error.errors) ? error.errors : [error.cause];
}
