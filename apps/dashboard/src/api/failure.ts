import { PORTAL_COMPANY_ID } from './addresses.ts';
import { portalMessageOf, refusalMessageOf } from './failure-words.ts';

/** A call that the gateway refused, or that it did not answer. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly problems: readonly Problem[];

  constructor(status: number, { code, message, requestId = null, errors = [] }: FailureBody) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    // The message is about one field, so it is shown there.
    this.problems = code === 'uid_taken' ? [{ path: 'uid', message }] : errors;
  }
}

/** What is wrong with one field of a request. */
export interface Problem {
  path: string;
  message: string;
}

interface FailureBody {
  code: string;
  message: string;
  requestId?: string | null;
  errors?: readonly Problem[];
}

/** Returns why a call failed, from what the gateway answered. */
export function failureOf(status: number, body: unknown): ApiFailure {
  if (isFailureBody(body)) return new ApiFailure(status, inShownWords(body));
  const message = `The gateway answered ${status} without saying why. Something between it and this page may have answered.`;
  return new ApiFailure(status, { code: 'unknown_answer', message });
}

/** Returns the failure of a sign-in at the issuer, from the code with which the gateway leads back. */
export function refusalOf(code: string): ApiFailure {
  return new ApiFailure(0, { code, message: refusalMessageOf(code) });
}

function inShownWords(body: FailureBody): FailureBody {
  if (PORTAL_COMPANY_ID === null) return body;
  return { ...body, message: portalMessageOf(body.code, body.message) };
}

function isFailureBody(body: unknown): body is FailureBody {
  return typeof body === 'object' && body !== null && 'code' in body && 'message' in body;
}

/** Returns any thrown value as a failure. A network error of `fetch` has no status and no text worth showing. */
export function toFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  const message = error instanceof TypeError ? UNREACHABLE : String(error);
  return new ApiFailure(0, { code: 'unreachable', message });
}

const UNREACHABLE =
  'The gateway did not answer. It may be restarting, or this machine cannot reach it. The page tries again.';
