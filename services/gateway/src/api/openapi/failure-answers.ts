import { STATUS_CODES } from 'node:http';
import type { Route } from '../../http/route.ts';
import { codesOf, ERROR_CODES } from './error-codes.ts';
import type { JsonSchema } from './json-schemas.ts';
import { EVERY_ANSWER_HEADERS, RETRY_AFTER, type AnswerHeaders } from './answer-headers.ts';

export const REQUEST_ID = '7d5f9c1e-4b7a-4c62-9a55-0f3f6f1f8f0e';

/** The envelope of every failure, named `Failure` in the document. */
export const FAILURE_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['success', 'message', 'code', 'requestId'],
  properties: {
    success: { const: false },
    message: { type: 'string', description: 'For people; may change' },
    code: { type: 'string', description: 'For programs; one fixed word per cause' },
    requestId: { type: 'string', description: 'The same as in the header `X-Request-Id`' },
    errors: {
      type: 'array',
      description: 'Everything that is wrong with the request; only with `invalid_request`',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: {
          path: { type: 'string', description: 'Field, query parameter or header, with dots' },
          message: { type: 'string' },
        },
        additionalProperties: false,
      },
    },
  },
  additionalProperties: false,
};

export interface FailureAnswers {
  /** Status → reference, for one route. */
  of: (route: Route) => Record<string, JsonSchema>;
  /** For `components.responses`, by name. */
  named: Record<string, JsonSchema>;
}

/** Routes that can fail in the same ways with one status share one answer in the document. */
export function createFailureAnswers(): FailureAnswers {
  const named: Record<string, JsonSchema> = {};
  return {
    named,
    of: (route) =>
      Object.fromEntries(
        [...codesOf(route)].map(([status, codes]) => {
          const name = [status, ...codes].join('.');
          named[name] ??= failureAnswer(status, codes);
          return [status, { $ref: `#/components/responses/${name}` }];
        }),
      ),
  };
}

function failureAnswer(status: number, codes: readonly string[]): JsonSchema {
  const reasons = codes.map((code) => `- \`${code}\`: ${ERROR_CODES[code]?.when ?? ''}`);
  return {
    description: [STATUS_CODES[status], '', ...reasons].join('\n'),
    headers: headersOf(codes),
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

function headersOf(codes: readonly string[]): AnswerHeaders {
  const retryable = codes.some((code) => ERROR_CODES[code]?.retryAfter !== undefined);
  return { ...EVERY_ANSWER_HEADERS, ...(retryable && RETRY_AFTER) };
}

function exampleOf(code: string): JsonSchema {
  const message = ERROR_CODES[code]?.message ?? '';
  const errors = code === 'invalid_request' && [{ path: 'name', message: 'is required' }];
  return { success: false, message, code, requestId: REQUEST_ID, ...(errors && { errors }) };
}
