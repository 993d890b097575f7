import { STATUS_CODES } from 'node:http';
import type { Route } from '../../http/request/route.ts';
import { codesOf, errorOf } from './error-codes.ts';
import type { JsonSchema } from './json-schemas.ts';
import {
  COMMON_HEADERS,
  RETRY_AFTER,
  WWW_AUTHENTICATE,
  type ResponseHeaders,
} from './response-headers.ts';

export const REQUEST_ID = '7d5f9c1e-4b7a-4c62-9a55-0f3f6f1f8f0e';

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
      items: {
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
        additionalProperties: false,
      },
    },
  },
  additionalProperties: false,
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

function failureResponse(status: number, codes: readonly string[]): JsonSchema {
  const reasons = codes.map((code) => `- \`${code}\`: ${errorOf(code).when}`);
  return {
    description: [STATUS_CODES[status], '', ...reasons].join('\n'),
    headers: headersOf(status, codes),
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Failure' }],
          properties: { code: { enum: codes } },
        },
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
    },
  };
}

function headersOf(status: number, codes: readonly string[]): ResponseHeaders {
  const retryable = codes.some((code) => errorOf(code).retryAfter !== undefined);
  return {
    ...COMMON_HEADERS,
    ...(retryable && RETRY_AFTER),
    ...(status === 401 && WWW_AUTHENTICATE),
  };
}

function exampleOf(code: string): JsonSchema {
  const { message } = errorOf(code);
  const errors = code === 'invalid_request' && [{ path: 'name', message: 'is required' }];
  return { success: false, message, code, requestId: REQUEST_ID, ...(errors && { errors }) };
}
