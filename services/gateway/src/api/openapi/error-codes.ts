import type { Route, SpecificError } from '../../http/route.ts';

export interface ErrorSpec {
  status: number;
  /** When it comes, as in docs/decisions/0004-api-errors.md. */
  when: string;
  /** A message that it may have. */
  message: string;
  /** Seconds; some failures tell when a repeat makes sense. */
  retryAfter?: string;
}

/** Failures of the server before it knows the address, and of everything that all routes share. */
const EVERYWHERE = {
  malformed_request: {
    status: 400,
    when: 'not valid HTTP',
    message: 'This is not a valid HTTP request.',
  },
  invalid_request: {
    status: 400,
    when: 'fields, headers or query parameters are wrong; `errors` lists all of them',
    message: 'name: is required',
  },
  unauthorized: {
    status: 401,
    when: 'no API key, or not a valid one',
    message: 'Send a valid API key in the header x-api-key.',
  },
  company_mismatch: {
    status: 403,
    when: '`companyid` is not the company of the key',
    message: 'companyid is not the company of the API key.',
  },
  request_timeout: {
    status: 408,
    when: 'the request did not arrive in time',
    message: 'The request did not arrive in time.',
  },
  expectation_failed: {
    status: 417,
    when: 'an `Expect` other than `100-continue`',
    message: 'Expect can only be 100-continue.',
  },
  rate_limited: {
    status: 429,
    when: 'too many requests of the company or the address',
    message: 'This company has sent too many requests; wait.',
    retryAfter: '12',
  },
  too_many_wrong_keys: {
    status: 429,
    when: 'too many wrong API keys from the address; a valid key still works',
    message: 'This address has sent too many wrong API keys; wait.',
    retryAfter: '40',
  },
  headers_too_large: {
    status: 431,
    when: 'more than 16,384 bytes of headers',
    message: 'The headers are larger than 16384 bytes.',
  },
  internal_error: {
    status: 500,
    when: 'a fault of ours; tell us the `requestId`',
    message: 'Something went wrong here.',
  },
  unavailable: {
    status: 503,
    when: 'cannot be stored now; send it again',
    message: 'The request cannot be stored at the moment; send it again.',
    retryAfter: '2',
  },
} as const satisfies Record<string, ErrorSpec>;

const WITH_BODY = {
  invalid_json: {
    status: 400,
    when: 'not UTF-8, not a JSON object, a key given twice, or nested deeper than 64 levels',
    message: 'The body cannot be used: not valid JSON.',
  },
  incomplete_body: {
    status: 400,
    when: 'the body ended before its announced length',
    message: 'The body ended before its announced length.',
  },
  body_too_large: {
    status: 413,
    when: 'more than 262,144 bytes',
    message: 'The body is larger than 262144 bytes.',
  },
  unsupported_media_type: {
    status: 415,
    when: 'not JSON, or compressed',
    message: 'Send Content-Type: application/json.',
  },
} as const satisfies Record<string, ErrorSpec>;

const WITH_PATH_ID = {
  route_not_found: {
    status: 404,
    when: 'no such address',
    message: 'The address is not valid percent-encoding.',
  },
} as const satisfies Record<string, ErrorSpec>;

const SOMEWHERE: Record<SpecificError, ErrorSpec> = {
  not_found: {
    status: 404,
    when: 'not there, or not yours; never told which',
    message: 'There is no such webhook.',
  },
  delivery_pending: {
    status: 409,
    when: 'the delivery has not reached a final state',
    message: 'The delivery is still pending.',
  },
  resend_running: {
    status: 409,
    when: 'a resend of it is under way',
    message: 'It is being sent again already.',
  },
  webhook_deleted: {
    status: 409,
    when: 'its webhook was deleted',
    message: 'The webhook was deleted.',
  },
  webhook_disabled: {
    status: 409,
    when: 'its webhook is disabled',
    message: 'The webhook is disabled.',
  },
  idempotency_key_running: {
    status: 409,
    when: 'the first request with this key is still running',
    message:
      'The first request with this Idempotency-Key is still running; send it again in a moment.',
    retryAfter: '1',
  },
  idempotency_key_reused: {
    status: 422,
    when: 'the key was used with another body',
    message: 'This Idempotency-Key was used with another body; use a new key for a new message.',
  },
};

/** Every code that the API can answer. */
export const ERROR_CODES: Readonly<Record<string, ErrorSpec>> = {
  ...EVERYWHERE,
  ...WITH_BODY,
  ...WITH_PATH_ID,
  ...SOMEWHERE,
};

/** The codes that a route can answer, by status. */
export function codesOf(route: Route): Map<number, string[]> {
  const codes = [
    ...Object.keys(EVERYWHERE),
    ...(route.body ? Object.keys(WITH_BODY) : []),
    ...(route.path.includes(':') ? Object.keys(WITH_PATH_ID) : []),
    ...(route.errors ?? []),
  ];
  return Map.groupBy(codes, (code) => ERROR_CODES[code]?.status ?? 0);
}
