const MAX_RETRIES = 3;
/** A partition whose broker has died gets another leader after about 10 s. */
const PARTLY_STORED_MS = 30_000;

export interface FailedSend {
  /** Requests of this send that have failed. */
  failures: number;
  /** For how long some of its records have been stored, in milliseconds; null when none is. */
  partlyStoredForMs: number | null;
}

/**
 * Returns true when the producer sends what is left again. After its last failure the caller, which logs it, repeats
 * the whole send: copies of what is stored. So a send that is stored in part has more time than another one.
 */
export function mayRetry(error: unknown, { failures, partlyStoredForMs }: FailedSend): boolean {
  if (!isRetriable(error)) return false;
  return partlyStoredForMs === null
    ? failures <= MAX_RETRIES
    : partlyStoredForMs < PARTLY_STORED_MS;
}

/** kafkajs, which is told not to retry, wraps only what it would have retried into this error. */
function isRetriable(error: unknown): boolean {
  return error instanceof Error && error.name === 'KafkaJSNumberOfRetriesExceeded';
}
