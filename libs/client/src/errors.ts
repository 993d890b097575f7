import type { ErrorCode, MessageResult, Problem } from './schema.ts';

/** The base of everything that the client throws by itself. Wrong arguments are a TypeError. */
export class PosthornError extends Error {
  override readonly name: string = 'PosthornError';
  /**
   * The `Idempotency-Key` of the request, when it had one. A request that failed may have been carried out all the same;
   * with this key as its option, it is safe to send again for 24 hours, and changes nothing twice.
   */
  idempotencyKey?: string;
  /**
   * Of `sendMany`: what became of each message before the request that failed, in their order. Null for a message without
   * a result, which may have been stored only when it was in that request.
   */
  results?: readonly (MessageResult | null)[];
}

/** The API could not be reached, or its answer broke off. */
export class ConnectionError extends PosthornError {
  override readonly name = 'ConnectionError';
}

/** No answer, or not all of it, came within `timeoutMs`. */
export class TimeoutError extends PosthornError {
  override readonly name = 'TimeoutError';
}

/** A failure as the API describes it (docs/contract.md C2.3). */
export interface Failure {
  status: number;
  code: ErrorCode | (string & {});
  message: string;
  requestId: string | null;
  errors?: readonly Problem[];
  retryAfterMs?: number;
}

/** The API refused the request. Decide by `code`: the text of `message` may change. */
export class ApiError extends PosthornError {
  override readonly name: string = 'ApiError';
  readonly status: number;
  /** `unknown` when the answer is not from Posthorn, but from a proxy before it. Later versions have more codes. */
  readonly code: ErrorCode | (string & {});
  /** The id of the request in the logs of the service. */
  readonly requestId: string | null;
  /** Every problem of the request, with `invalid_request`. */
  readonly errors?: readonly Problem[];
  /** The time in `Retry-After`. */
  readonly retryAfterMs?: number;

  constructor({ status, code, message, requestId, errors, retryAfterMs }: Failure) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    if (errors) this.errors = errors;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** 400, and each 4xx without a class of its own: the request itself is wrong. */
export class BadRequestError extends ApiError {
  override readonly name: string = 'BadRequestError';
}

/** 400 `invalid_request`: fields are wrong, and `errors` names each of them. */
export class ValidationError extends BadRequestError {
  override readonly name = 'ValidationError';
}

/** 401: the API key is missing or not valid. */
export class AuthenticationError extends ApiError {
  override readonly name = 'AuthenticationError';
}

/** 403: the API key may not do this. */
export class PermissionError extends ApiError {
  override readonly name = 'PermissionError';
}

/** 404: there is no such object, or it belongs to another company. */
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError';
}

/** 409, and 422 `idempotency_key_reused`: the state of the object does not allow it. */
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError';
}

/** 429: too many requests. */
export class RateLimitError extends ApiError {
  override readonly name = 'RateLimitError';
}

/** 5xx: the service cannot answer now. */
export class ServerError extends ApiError {
  override readonly name = 'ServerError';
}

const CLASS_OF_STATUS: Readonly<Record<number, typeof ApiError>> = {
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  422: ConflictError,
  429: RateLimitError,
};

export function apiErrorOf(failure: Failure): ApiError {
  return new (classOf(failure))(failure);
}

function classOf({ status, code }: Failure): typeof ApiError {
  if (code === 'invalid_request') return ValidationError;
  if (status >= 500) return ServerError;
  return CLASS_OF_STATUS[status] ?? (status >= 400 ? BadRequestError : ApiError);
}
