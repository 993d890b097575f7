/** Of the record, and of the batch that a broker makes of what was sent at once. */
const TOO_LARGE = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);

/** True when a broker refused what was sent for its size; sending it again cannot help. */
export function isTooLarge(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return TOO_LARGE.has(refusalOf(error)) || reasonsOf(error).some(isTooLarge);
}

/** What the broker called its refusal: kafkajs tells it as `type`, @platformatic/kafka as `apiId`. */
function refusalOf(error: Error): string {
  if ('type' in error) return String(error.type);
  return 'apiId' in error ? String(error.apiId) : '';
}

/** @platformatic/kafka gathers the refusals of all partitions in one error. */
function reasonsOf(error: Error): unknown[] {
  return 'errors' in error && Array.isArray(error.errors) ? error.errors : [error.cause];
}
