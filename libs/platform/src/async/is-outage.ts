/**
 * Names of errors that are faults of the program or of its data: a repeat fails in the same way. Names,
 * because an error of another realm, or of a second copy of a package, is no instance of the class here.
 */
const FAULTS = new Set([
  // Of JavaScript.
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'EvalError',
  'URIError',
  'AssertionError',
  // Of validation, by zod and mongoose.
  'ZodError',
  '$ZodError',
  'ValidationError',
  'CastError',
  // Of the MongoDB driver: what it refuses to send.
  'BSONError',
  'BSONVersionError',
  'BSONRuntimeError',
  'MongoInvalidArgumentError',
  'MongoMissingDependencyError',
  // Of Posthorn: a bug.
  'ImpossibleError',
  // Of Posthorn: a person must change something first; the process stops.
  'StartupError',
  'StoppedError',
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
