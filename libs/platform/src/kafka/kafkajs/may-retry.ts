const MAX_RETRIES = 3;
/** A partition whose broker has died gets another leader after about 10 s. */
const RETRIED_FOR_MS = 40_000;

/** kafkajs has reported success, and messages were in no request. */
export class LeftOutError extends Error {
  override readonly name = 'LeftOutError';
}

interface FailedSend {
  /** Requests of this send that have failed. */
  failures: number;
  isPartlyStored: boolean;
  /** Since the send began, in milliseconds. */
  elapsedMs: number;
}

/**
 * Returns true when the producer sends what is left again. After its last failure the caller, which logs it, repeats
 * the whole send: copies of what is stored. So a send that is stored in part has more time than another one.
 */
export function mayRetry(
  error: Error,
  { failures, isPartlyStored, elapsedMs }: FailedSend,
): boolean {
  if (!isRetriable(error) || elapsedMs >= RETRIED_FOR_MS) return false;
  return isPartlyStored || failures <= MAX_RETRIES;
}

/**
 * kafkajs, which is told not to retry, wraps what it would have retried. When it fails to look up the leaders after a
 * failure, it wraps that as an error that it would not retry, with the real one as its cause.
 */
function isRetriable({ name, cause }: Error): boolean {
  if (name === 'LeftOutError' || name === 'KafkaJSNumberOfRetriesExceeded') return true;
  return cause instanceof Error && 'retriable' in cause && cause.retriable === true;
}
