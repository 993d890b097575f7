export {
  ApiError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  NotFoundError,
  PermissionError,
  PosthornError,
  RateLimitError,
  ServerError,
  TimeoutError,
  ValidationError,
} from './errors.ts';
export type { GivenHeaders } from './headers.ts';
export type { SendManyMessage, SendMessage, WaitOptions } from './messages.ts';
export type { Method, RawRequest } from './operations.ts';
export { Posthorn, type PosthornOptions } from './posthorn.ts';
export type { UpdateOptions } from './resources.ts';
export type { ApiPromise, List, Page } from './results.ts';
export type * from './schema.ts';
export type { Answer, CreateOptions, Logger, RequestOptions } from './transport.ts';
