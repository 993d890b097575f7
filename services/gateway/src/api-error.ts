import { isOutage } from '@posthorn/platform/async/keep-trying.ts';
import { asStoreError } from '@posthorn/platform/mongo/connect.ts';
import { StoreUnavailableError } from '@posthorn/platform/service/errors.ts';
import mongoose from 'mongoose';
import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

/** One problem of a request. `path` is '' for the request as a whole. */
export interface Problem {
  path: string;
  message: string;
}

/** Why the response is 503. It is logged, and not part of the response. */
export type UnavailableReason =
  | 'mongodb_unavailable'
  /** Kafka does not have the records of a message whose deliveries are in order. */
  | 'kafka_unavailable'
  /** The clock of this process or the clock of MongoDB is wrong. */
  | 'clock_wrong'
  /** Only for what Redis alone knows. */
  | 'redis_unavailable'
  /** The time of the request was over, or its client had gone, while it waited. */
  | 'deadline_over'
  /** The company, or the address of a client that is not known yet, holds as much memory as it may. */
  | 'share_full'
  /** Other requests kept changing the same document. */
  | 'changed_by_others'
  /** Reads for clients that are not known yet, such as look-ups of keys. */
  | 'too_many_waiting';

interface ApiErrorOptions {
  problems?: Problem[];
  headers?: Record<string, string>;
  isDelayed?: boolean;
  reason?: UnavailableReason | null;
}

/** A failure that is reported to the client with a fixed code (docs/decisions/0004-api-errors.md). */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly problems: readonly Problem[];
  readonly headers: Readonly<Record<string, string>>;
  /** The refusal is sent later: clients that repeat at once would cost more than the refused request. */
  readonly isDelayed: boolean;
  /** For the log; null when the code says it. */
  readonly reason: UnavailableReason | null;

  constructor(
    code: ErrorCode,
    message: string = ERROR_CODES[code].message,
    { problems = [], headers = {}, isDelayed = false, reason = null }: ApiErrorOptions = {},
  ) {
    super(message);
    this.code = code;
    this.problems = problems;
    this.headers = headers;
    this.isDelayed = isDelayed;
    this.reason = reason;
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }
}

/** A body has room for 28,000 unknown keys. Reporting them all would make a response of 2 MB. */
export const MAX_PROBLEMS = 100;

export const invalidRequest = (problems: Problem[]): ApiError =>
  new ApiError('invalid_request', describe(problems), {
    problems: problems.slice(0, MAX_PROBLEMS),
  });

export const notFound = (what: string): ApiError =>
  new ApiError('not_found', `There is no such ${what}.`);

/** The key is valid, but does not permit the request. */
export const insufficientScope = (message: string): ApiError =>
  new ApiError('insufficient_scope', message);

export const cannotGive = (scope: string): ApiError =>
  insufficientScope(`This API key does not have the scope ${scope}, so it cannot give it.`);

export const cannotOutlive = (end: Date): ApiError =>
  insufficientScope(
    `This API key ends at ${end.toISOString()}, and a key that it makes ends no later.`,
  );

export const forOneApp = (): ApiError =>
  insufficientScope('This API key may be used for one app only.');

/** Returns the document. Throws ApiError 404 when there is none. */
export function foundOr404<Found extends object>(found: Found | null, what: string): Found {
  if (!found) throw notFound(what);
  return found;
}

/** For `catch`: returns null for ApiError 404, and throws every other error. */
export function nullIf404(error: unknown): null {
  if (error instanceof ApiError && error.status === 404) return null;
  throw error;
}

const cannotBeStored = (reason: UnavailableReason, isDelayed = false): ApiError =>
  new ApiError('unavailable', undefined, {
    headers: { 'Retry-After': '2' },
    isDelayed,
    reason,
  });

export const unavailable = (reason: UnavailableReason): ApiError => cannotBeStored(reason);

/** The first request with the same idempotency key is not decided yet. */
export const keyRunning = (): ApiError =>
  new ApiError('idempotency_key_running', undefined, { headers: { 'Retry-After': '1' } });

/** The company, or the address of a client that is not known yet, holds as much memory as it may. */
export const overloaded = (): ApiError => cannotBeStored('share_full', true);

/** Returns anything that was thrown as the failure that its client learns of. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (asStoreError(error) instanceof StoreUnavailableError)
    return unavailable('mongodb_unavailable');
  return new ApiError('internal_error');
}

/** True when the same request may succeed later without a change, as for the client, which sends it again by itself. */
export function isTemporary(error: unknown): boolean {
  const { status, code } = toApiError(error);
  return status >= 500 || status === 429 || code === 'idempotency_key_running';
}

/**
 * True for a fault of ours: the same request fails in the same way, as far as anybody knows. What MongoDB reports about
 * itself is none, such as a login that was changed or a full disk.
 */
export function isFault(error: unknown): boolean {
  if (error instanceof mongoose.mongo.MongoError && isOutage(error)) return false;
  return toApiError(error).code === 'internal_error';
}

function describe(problems: Problem[]): string {
  const first = problems[0];
  if (!first) return 'The request is invalid.';
  const where = first.path ? `${first.path}: ` : '';
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return `${where}${first.message}${more}`;
}
