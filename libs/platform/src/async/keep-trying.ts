import { pause } from './pause.ts';

/** The part of a logger that retries need. */
interface FailureLogger {
  warn: (fields: object, text: string) => void;
}

interface KeepTryingDeps {
  logger: FailureLogger;
  /** Aborted when the process, or the part of it that retries, stops. */
  signal: AbortSignal;
  /** How an error is shown in the log; `{ err: error }` unless given. */
  describeError?: (error: unknown) => object;
  firstWaitMs?: number;
  maxWaitMs?: number;
  /** Counts milliseconds; the clock of the process unless given. */
  monotonicMs?: () => number;
}

/**
 * Repeats a step until it succeeds, with waits that double up to a bound. For steps whose result must
 * not be lost while a store or Kafka is away; failures of receivers have the retry schedule.
 *
 * `purpose` completes "to …" in the log, such as "publish failures". Failures of one purpose are
 * logged at once and then every 10 s at most; `fieldsOf` adds fields to the log line.
 *
 * Throws what is no outage as it is, at once (see isOutage). Throws StoppedError when the step fails
 * after the stop, or when the stop comes during a wait. The step runs once even when the stop came
 * before, so that work under way can be finished while the process drains.
 */
export type KeepTrying = <T>(
  purpose: string,
  step: () => Promise<T>,
  fieldsOf?: () => object,
) => Promise<T>;

/** A stop ended the retries: the step is not done, and what depends on it must be left undone too. */
export class StoppedError extends Error {
  override readonly name = 'StoppedError';
}

/** An outage of an hour makes 360 lines for each purpose. */
const LOG_EVERY_MS = 10_000;

export function createKeepTrying(deps: KeepTryingDeps): KeepTrying {
  const { signal, firstWaitMs = 100, maxWaitMs = 2_000 } = deps;
  const report = createReport(deps);
  return async (purpose, step, fieldsOf) => {
    for (let failures = 1; ; failures += 1) {
      try {
        return await step();
      } catch (error) {
        if (!isOutage(error)) throw error;
        if (!signal.aborted) {
          report({ purpose, failures, error, fieldsOf });
          await pause(Math.min(firstWaitMs * 2 ** (failures - 1), maxWaitMs), signal);
        }
        if (signal.aborted) throw stoppedBy(error, purpose);
      }
    }
  };
}

interface Failure {
  purpose: string;
  failures: number;
  error: unknown;
  fieldsOf: (() => object) | undefined;
}

interface Logged {
  atMs: number;
  /** Failures since then that were not logged. */
  unlogged: number;
}

/** Purposes are few and fixed, so what is kept for each does not grow. */
function createReport({
  logger,
  describeError = (error) => ({ err: error }),
  monotonicMs = () => performance.now(),
}: KeepTryingDeps): (failure: Failure) => void {
  const byPurpose = new Map<string, Logged>();
  return ({ purpose, failures, error, fieldsOf }) => {
    const nowMs = monotonicMs();
    const last = byPurpose.get(purpose);
    if (last && nowMs - last.atMs < LOG_EVERY_MS) {
      last.unlogged += 1;
      return;
    }
    byPurpose.set(purpose, { atMs: nowMs, unlogged: 0 });
    const unlogged = last?.unlogged ?? 0;
    logger.warn(
      { ...describeError(error), ...fieldsOf?.(), failures, unlogged },
      `failed to ${purpose}, retrying`,
    );
  };
}

function stoppedBy(error: unknown, purpose: string): StoppedError {
  const reason = error instanceof Error ? error.message : String(error);
  return new StoppedError(`stopped before it could ${purpose}: ${reason}`, { cause: error });
}

/**
 * Names of errors that are faults of the program or of its data: a repeat fails in the same way. Names,
 * because an error of another realm, or of a second copy of a package, is no instance of the class here.
 */
const FAULTS = new Set([
  // Errors of JavaScript.
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'EvalError',
  'URIError',
  'AssertionError',
  // Errors of validation, by zod and mongoose.
  'ZodError',
  '$ZodError',
  'ValidationError',
  'CastError',
  // Commands that the MongoDB driver refuses to send.
  'BSONError',
  'BSONVersionError',
  'BSONRuntimeError',
  'MongoInvalidArgumentError',
  'MongoMissingDependencyError',
  // A bug of Posthorn.
  'ImpossibleError',
  // A person must change something first; the process stops.
  'StartupError',
  'StoppedError',
  // The consumer of a record reads it again later.
  'GiveBackError',
]);

/**
 * Codes with which MongoDB refuses a command for what it says: BadValue, FailedToParse, TypeMismatch,
 * PathNotViable, ConflictingUpdateOperators, DollarPrefixedFieldName, ImmutableField, CommandNotFound,
 * DocumentValidationFailure, BSONObjectTooLarge. A duplicate key (11000) is none of them: two upserts
 * that race end with it, and the repeat of the later one succeeds.
 */
const REFUSED_COMMANDS = new Set([2, 9, 14, 28, 40, 52, 66, 59, 121, 10334]);

/**
 * Returns true when the step that threw this may succeed if it is repeated: a store or Kafka is away,
 * has no primary or leader, is overloaded, full or misconfigured. Returns false for a fault of the
 * program or of its data. An unknown error counts as an outage: what was accepted must not be lost
 * because a driver has a new error class.
 */
export function isOutage(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('name' in error)) return true;
  const { name } = error;
  return !FAULTS.has(String(name)) && !isRefusedCommand(error, name);
}

function isRefusedCommand(error: object, name: unknown): boolean {
  const isFromServer = name === 'MongoServerError' || name === 'MongoBulkWriteError';
  return isFromServer && 'code' in error && REFUSED_COMMANDS.has(Number(error.code));
}
