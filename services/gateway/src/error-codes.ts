interface ErrorSpec {
  status: number;
  /** When the code is returned, as in docs/decisions/0004-api-errors.md. */
  when: string;
  /** The message of an error that has no other, and the example of the OpenAPI document. */
  message: string;
  /** An example of `Retry-After`, in seconds. */
  retryAfter?: string;
}

/** Failures of the dashboard's pages, which are no operations of the API (docs/contract.md C19.5, C20.4). */
export const DASHBOARD_CODES = {
  session_replaced: {
    status: 401,
    when: 'the browser has another session now than the page shows',
    message: 'This browser began another session since, which took the place of this one.',
  },
  no_role: {
    status: 403,
    when: 'a person who signs in has no role in the company, or in any',
    message: 'None of your groups has a role here. Ask an admin of your company.',
  },
  groups_unknown: {
    status: 403,
    when: 'the issuer did not list all groups of a person who signs in',
    message:
      'The list of your groups is not complete. Assign groups to the application, or use app roles and OIDC_GROUPS_CLAIM=roles.',
  },
  person_disabled: {
    status: 403,
    when: 'the person who signs in is disabled in the company',
    message: 'An admin has disabled your access.',
  },
  sign_in_expired: {
    status: 400,
    when: 'a sign-in at the issuer took more than ten minutes, or was begun in another browser',
    message: 'This sign-in has expired, or was begun elsewhere. Sign in again.',
  },
  sign_in_refused: {
    status: 400,
    when: 'the issuer has refused a sign-in, or the person has',
    message: 'The sign-in was refused at your login. Sign in again, or ask an admin.',
  },
  sign_in_invalid: {
    status: 400,
    when: 'the answer of the issuer to a sign-in, or a logout token, does not pass its checks',
    message: 'The answer of your login is not valid. Sign in again.',
  },
  sign_in_by_key_off: {
    status: 403,
    when: 'an API key is used to sign in to the dashboard while `OIDC_ONLY` is true',
    message: 'API keys do not sign in here. Sign in at your login.',
  },
  sign_in_unavailable: {
    status: 503,
    when: 'the issuer cannot be reached, or too many people sign in at once',
    message: 'Your login cannot be reached at the moment. Try again soon.',
    retryAfter: '5',
  },
  link_unknown: {
    status: 404,
    when: 'a link of the dashboard was never made, or was changed',
    message: 'There is no such link. Check that all of it was copied, or ask for another one.',
  },
  link_used: {
    status: 410,
    when: 'a link of the dashboard was used already',
    message: 'This link was used already. It opens once; ask for another one.',
  },
  link_revoked: {
    status: 410,
    when: 'a link of the dashboard was revoked, or the API key that made it',
    message: 'This link was revoked. Ask for another one.',
  },
  link_expired: {
    status: 410,
    when: 'a link of the dashboard has expired',
    message: 'This link has expired. Ask for another one.',
  },
} as const satisfies Record<string, ErrorSpec>;

/** Failures that every route can return, those before the route is known included. */
export const EVERYWHERE = {
  malformed_request: {
    status: 400,
    when: 'the request is not valid HTTP, or has not exactly one valid `Host`',
    message: 'This is not a valid HTTP request.',
  },
  invalid_request: {
    status: 400,
    when: 'fields, headers or query parameters are wrong; `errors` lists every problem',
    message: 'name: is required',
  },
  delivery_refused: {
    status: 400,
    when: 'the request has the header `webhook-id`: it is a delivery of a webhook that points to this API',
    message:
      'A request with the header webhook-id is a delivery; the API does not take deliveries.',
  },
  unauthorized: {
    status: 401,
    when: 'the API key is missing or not valid',
    message: 'Send a valid API key in the header x-api-key, or as Authorization: Bearer.',
  },
  company_mismatch: {
    status: 403,
    when: '`companyid` is not the company of the API key',
    message: 'companyid is not the company of the API key.',
  },
  company_suspended: {
    status: 403,
    when: 'the company of the API key is suspended',
    message: 'The company of this API key is suspended.',
  },
  insufficient_scope: {
    status: 403,
    when: 'the API key does not have the scope of the route, or may be used for one app only',
    message: 'This API key does not have the scope webhooks:write.',
  },
  request_timeout: {
    status: 408,
    when: 'the request did not arrive in time',
    message: 'The request did not arrive in time.',
  },
  expectation_failed: {
    status: 417,
    when: '`Expect` asks for something other than `100-continue`',
    message: 'The only supported Expect is 100-continue.',
  },
  rate_limited: {
    status: 429,
    when: 'the company or the client address sent too many requests',
    message: 'This company has sent too many requests; wait.',
    retryAfter: '12',
  },
  too_many_wrong_keys: {
    status: 429,
    when: 'the client address sent too many wrong API keys; a valid key that is in use still works',
    message: 'This address has sent too many wrong API keys; wait.',
    retryAfter: '40',
  },
  headers_too_large: {
    status: 431,
    when: 'the headers are more than 100, or have more than 16,384 bytes',
    message: 'The headers are larger than 16384 bytes.',
  },
  internal_error: {
    status: 500,
    when: 'a fault of the service; report the `requestId`',
    message: 'An internal error occurred.',
  },
  not_implemented: {
    status: 501,
    when: '`Transfer-Encoding` is something other than `chunked`, or the method is CONNECT',
    message: 'The only supported Transfer-Encoding is chunked.',
  },
  unavailable: {
    status: 503,
    when: 'the request cannot be stored now; send it again',
    message: 'The request cannot be stored at the moment. Send it again.',
    retryAfter: '2',
  },
} as const satisfies Record<string, ErrorSpec>;

/** Failures of routes that read a body. */
export const WITH_BODY = {
  invalid_json: {
    status: 400,
    when: 'the body is not UTF-8, is not a JSON object, repeats a key, or is nested deeper than 64 levels',
    message: 'The body is not acceptable: not valid JSON.',
  },
  incomplete_body: {
    status: 400,
    when: 'the body ended before its announced length',
    message: 'The body ended before its announced length.',
  },
  chunks_too_small: {
    status: 400,
    when: 'the body comes in more than 1,024 chunks, with fewer than four bytes in the mean',
    message: 'The body comes in too many chunks of one to three bytes. Send it in larger ones.',
  },
  body_too_large: {
    status: 413,
    when: 'the body has more than 262,144 bytes, or more than 1,048,576 of a batch',
    message: 'The body is larger than 262144 bytes.',
  },
  unsupported_media_type: {
    status: 415,
    when: 'the body is not JSON, or is compressed',
    message: 'Send Content-Type: application/json.',
  },
} as const satisfies Record<string, ErrorSpec>;

/** Failures of routes with an id in their path. */
export const WITH_PATH_ID = {
  route_not_found: {
    status: 404,
    when: 'the address does not exist',
    message: 'The path is not valid percent-encoding.',
  },
} as const satisfies Record<string, ErrorSpec>;

/** Failures that a route names in its `errors`. */
const SOMEWHERE = {
  not_found: {
    status: 404,
    when: 'it does not exist, or belongs to another company',
    message: 'There is no such webhook.',
  },
  delivery_pending: {
    status: 409,
    when: 'the delivery has no final state yet',
    message: 'The delivery is pending; it is retried automatically.',
  },
  delivery_final: {
    status: 409,
    when: 'the delivery has ended, so that nothing of it can be cancelled',
    message: 'The delivery has ended.',
  },
  not_blocked: {
    status: 409,
    when: 'the delivery is not the exhausted one at which its ordering key is blocked',
    message: 'The delivery is not an exhausted one that others wait for.',
  },
  quota_exceeded: {
    status: 409,
    when: 'the company, project, app, webhook or message would have more than it may; the message names the limit and its setting',
    message: 'The limit is 10000 webhooks for each app (QUOTA_WEBHOOKS_PER_APP).',
  },
  uid_taken: {
    status: 409,
    when: 'another project, app or webhook of the company has the `uid`; for an upsert, one with another owner or environment',
    message: 'Another app has the uid customer-17.',
  },
  event_type_exists: {
    status: 409,
    when: 'the catalogue of the project has an event type of this name',
    message: 'The project has the event type order.paid already.',
  },
  role_by_group: {
    status: 409,
    when: 'the role of the person comes from their groups alone',
    message: 'Groups decide about the role of this person. Change people-settings instead.',
  },
  key_of_link: {
    status: 409,
    when: 'a link made the API key, which nobody knows',
    message:
      'A link made this API key, which nobody knows, so it cannot be rotated. Revoke it instead.',
  },
  resend_running: {
    status: 409,
    when: 'a resend of it is running',
    message: 'The delivery, webhook or app is already being resent.',
  },
  too_many_cancellations: {
    status: 409,
    when: '100 cancellations by filter of the company run, or have ended within the last minute',
    message: '100 cancellations are under way; wait for their end.',
  },
  webhook_deleted: {
    status: 409,
    when: 'the webhook of the delivery was deleted',
    message: 'The webhook of this delivery was deleted.',
  },
  webhook_disabled: {
    status: 409,
    when: 'the webhook is disabled',
    message: 'The webhook is disabled; enable it first.',
  },
  payload_erased: {
    status: 409,
    when: 'the payload of the message was erased, by a request or because its app stores payloads until they are delivered',
    message: 'The payload of the message was erased.',
  },
  idempotency_key_running: {
    status: 409,
    when: 'the first request with this key is still running',
    message:
      'The first request with this Idempotency-Key is still running; send it again in a moment.',
    retryAfter: '1',
  },
  event_type_unknown: {
    status: 422,
    when: 'the project takes event types of its catalogue only, and the message has none of them',
    message: 'eventType: is no event type in the catalogue of the project, or is archived',
  },
  payload_invalid: {
    status: 422,
    when: 'the payload does not meet the schema of its event type; `errors` lists up to 20 problems',
    message: 'payload.amount: is required',
  },
  idempotency_key_reused: {
    status: 422,
    when: 'the key was used with another body, or with another id in the address',
    message: 'This Idempotency-Key was used with another body; use a new key for a new request.',
  },
} as const satisfies Record<string, ErrorSpec>;

/** A route without an id in its path may not exist either: that of people, without an issuer. */
export type SpecificError = keyof typeof SOMEWHERE | keyof typeof WITH_PATH_ID;

/** The failure of an address without an operation: the path exists, the method does not. */
const WITHOUT_OPERATION = {
  method_not_allowed: {
    status: 405,
    when: 'the address does not support the method; `Allow` lists those that it does',
    message: '/projects does not support PATCH.',
  },
} as const satisfies Record<string, ErrorSpec>;

/** Every error code of the API. A new one is an entry here, and the place that throws it. */
const CODES = {
  ...EVERYWHERE,
  ...WITH_BODY,
  ...WITH_PATH_ID,
  ...WITHOUT_OPERATION,
  ...DASHBOARD_CODES,
  ...SOMEWHERE,
};

export type ErrorCode = keyof typeof CODES;

export const ERROR_CODES: Readonly<Record<ErrorCode, ErrorSpec>> = CODES;
