import { STATUS_CODES } from 'node:http';
import type { Route } from '../http/route.ts';
import { CHALLENGE } from '../http/send-error.ts';
import {
  ERROR_CODES,
  type ErrorCode,
  EVERYWHERE,
  WITH_BODY,
  WITH_PATH_ID,
} from '../error-codes.ts';
import { exampleOf } from './examples.ts';
import type { JsonSchema, SchemaRegistry } from './json-schemas.ts';

/** Returns the success responses of a route, in their envelope, by status. An upsert has another one when it creates. */
export function successResponse(route: Route, schemas: SchemaRegistry): Record<string, JsonSchema> {
  const { operationId, headers = [], upsert } = route;
  const takesKey = headers.some(({ name }) => name === 'Idempotency-Key');
  const responses = [route.response, ...(upsert ? [upsert.response] : [])];
  return Object.fromEntries(
    responses.map((response) => {
      const described = {
        description: response.message,
        headers: { ...COMMON_HEADERS, ...(takesKey && IDEMPOTENCY_REPLAYED) },
        content: { 'application/json': envelopeOf({ operationId, response }, schemas) },
      };
      return [response.status, described];
    }),
  );
}

interface Envelope {
  schema: JsonSchema;
  example: JsonSchema;
}

/** Routes with the same data share one named envelope, such as `AppResponse` or `AppListResponse`. */
function envelopeOf(
  { operationId, response }: Pick<Route, 'operationId' | 'response'>,
  schemas: SchemaRegistry,
): Envelope {
  const { message } = response;
  const data = response.data && schemas.ofOutput(response.data);
  const properties = {
    success: { const: true },
    message: { type: 'string', description: 'For people. The text may change' },
    ...(data && { data }),
    ...(response.hasCursor && { nextCursor: NEXT_CURSOR }),
  };
  const envelope = { type: 'object', required: Object.keys(properties), properties };
  const example = data && { data: exampleOf(data, schemas.named) };
  return {
    schema: schemas.name(envelopeNameOf(operationId, data), envelope),
    example: {
      success: true,
      message,
      ...example,
      ...(response.hasCursor && { nextCursor: null }),
    },
  };
}

/** Throws for data without a name: a generator would make one up, and another one after the next change. */
function envelopeNameOf(operationId: string, data: JsonSchema | undefined): string {
  if (data === undefined) return 'EmptyResponse';
  const { $ref } = (data.items ?? data) as JsonSchema;
  if (typeof $ref !== 'string') throw new Error(`the data of ${operationId} have no id`);
  const name = $ref.slice($ref.lastIndexOf('/') + 1);
  return `${name}${data.items === undefined ? '' : 'List'}Response`;
}

const NEXT_CURSOR = {
  type: ['string', 'null'],
  description: 'The `cursor` of the next page; null on the last page',
};

const REQUEST_ID = '7d5f9c1e-4b7a-4c62-9a55-0f3f6f1f8f0e';

/** The envelope of every failure, named `Failure` in the document. */
export const FAILURE_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['success', 'message', 'code', 'requestId'],
  properties: {
    success: { const: false },
    message: { type: 'string', description: 'For people. The text may change' },
    code: { type: 'string', description: 'For programs. Each cause has one fixed code' },
    requestId: { type: 'string', description: 'The same as in the header `X-Request-Id`' },
    errors: {
      type: 'array',
      description: 'Every problem of the request, at most 100. Present with `invalid_request` only',
      items: { $ref: '#/components/schemas/Problem' },
    },
  },
};

/** One entry of `errors` of a failure, named `Problem` in the document. */
export const PROBLEM_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['path', 'message'],
  properties: {
    path: {
      type: 'string',
      description:
        'Name of the field, query parameter or header. Names of nested fields are joined by dots',
    },
    message: { type: 'string' },
  },
};

export interface FailureResponses {
  /** Returns the references to the failures of a route, by status. */
  of: (route: Route) => Record<string, JsonSchema>;
  /** For `components.responses`, by name. */
  named: Record<string, JsonSchema>;
}

/** Routes with the same error codes for a status share one response in the document. */
export function createFailureResponses(): FailureResponses {
  const named: Record<string, JsonSchema> = {};
  return {
    named,
    of: (route) =>
      Object.fromEntries(
        [...codesOf(route)].map(([status, codes]) => {
          const name = [status, ...codes].join('.');
          named[name] ??= failureResponse(status, codes);
          return [status, { $ref: `#/components/responses/${name}` }];
        }),
      ),
  };
}

/** Returns the codes that a route can return, by status. */
export function codesOf(route: Route): Map<number, ErrorCode[]> {
  const codes = [
    ...keysOf(EVERYWHERE),
    ...(route.body ? keysOf(WITH_BODY) : []),
    ...(route.path.includes(':') ? keysOf(WITH_PATH_ID) : []),
    ...new Set([...(route.errors ?? []), ...(route.upsert?.errors ?? [])]),
  ];
  return Map.groupBy(codes, (code) => ERROR_CODES[code].status);
}

const keysOf = <Code extends ErrorCode>(part: Record<Code, unknown>): Code[] =>
  Object.keys(part) as Code[];

function failureResponse(status: number, codes: readonly ErrorCode[]): JsonSchema {
  const reasons = codes.map((code) => `- \`${code}\`: ${ERROR_CODES[code].when}`);
  return {
    description: [STATUS_CODES[status], '', ...reasons].join('\n'),
    headers: headersOf(status, codes),
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Failure' }],
          properties: { code: { enum: codes } },
        },
        examples: Object.fromEntries(codes.map((code) => [code, { value: errorExampleOf(code) }])),
      },
    },
  };
}

function headersOf(status: number, codes: readonly ErrorCode[]): ResponseHeaders {
  const retryable = codes.some((code) => ERROR_CODES[code].retryAfter !== undefined);
  return {
    ...COMMON_HEADERS,
    ...(retryable && RETRY_AFTER),
    ...(status === 401 && WWW_AUTHENTICATE),
  };
}

function errorExampleOf(code: ErrorCode): JsonSchema {
  const { message } = ERROR_CODES[code];
  const errors = code === 'invalid_request' && [{ path: 'name', message: 'is required' }];
  return { success: false, message, code, requestId: REQUEST_ID, ...(errors && { errors }) };
}

type ResponseHeaders = Record<string, JsonSchema>;

const text = { type: 'string' };

/** For `components.headers`. */
export const NAMED_HEADERS: ResponseHeaders = {
  RequestId: {
    description:
      'Identifies the request in the logs of the service. The id from the request if it is valid, else a new one',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{8,128}$' },
  },
  RateLimit: {
    description:
      'Requests left (`r`) of the nearest limit, and seconds (`t`) until all of it is available again',
    schema: { ...text, examples: ['"company";r=299412;t=31'] },
  },
  RateLimitPolicy: {
    description: 'The nearest limit: requests (`q`) per window of seconds (`w`)',
    schema: { ...text, examples: ['"company";q=300000;w=60'] },
  },
  RetryAfter: {
    description: 'Seconds to wait before the request is sent again',
    schema: { ...text, pattern: '^[0-9]+$', examples: ['2'] },
  },
  WwwAuthenticate: {
    description: 'Says that the request needs an API key, and in which header',
    required: true,
    schema: { const: CHALLENGE },
  },
  IdempotencyReplayed: {
    description:
      'Present when this is the response of the first request with the same `Idempotency-Key`',
    schema: { const: 'true' },
  },
};

const reference = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` });

const COMMON_HEADERS: ResponseHeaders = {
  'X-Request-Id': reference('RequestId'),
  RateLimit: reference('RateLimit'),
  'RateLimit-Policy': reference('RateLimitPolicy'),
};

const RETRY_AFTER: ResponseHeaders = { 'Retry-After': reference('RetryAfter') };

const WWW_AUTHENTICATE: ResponseHeaders = {
  'WWW-Authenticate': reference('WwwAuthenticate'),
};

const IDEMPOTENCY_REPLAYED: ResponseHeaders = {
  'Idempotency-Replayed': reference('IdempotencyReplayed'),
};
