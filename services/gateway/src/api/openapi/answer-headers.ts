import type { JsonSchema } from './json-schemas.ts';

export type AnswerHeaders = Record<string, JsonSchema>;

const text = { type: 'string' };

/** For `components.headers`. */
export const NAMED_HEADERS: AnswerHeaders = {
  RequestId: {
    description: 'Names the request in our logs: the one that was sent, else one of ours',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{8,128}$' },
  },
  RateLimit: {
    description:
      'What is left (`r`) of the limit that is nearest, and the seconds until it is whole again (`t`)',
    schema: { ...text, examples: ['"company";r=299412;t=31'] },
  },
  RateLimitPolicy: {
    description: 'That limit: requests (`q`) in any so many seconds (`w`)',
    schema: { ...text, examples: ['"company";q=300000;w=60'] },
  },
  RetryAfter: {
    description: 'Seconds after which to send the request again',
    schema: { ...text, pattern: '^[0-9]+$', examples: ['2'] },
  },
  IdempotencyReplayed: {
    description: 'This is the answer of the first request with the same `Idempotency-Key`',
    schema: { const: 'true' },
  },
};

const reference = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` });

export const EVERY_ANSWER_HEADERS: AnswerHeaders = {
  'X-Request-Id': reference('RequestId'),
  RateLimit: reference('RateLimit'),
  'RateLimit-Policy': reference('RateLimitPolicy'),
};

export const RETRY_AFTER: AnswerHeaders = { 'Retry-After': reference('RetryAfter') };

export const IDEMPOTENCY_REPLAYED: AnswerHeaders = {
  'Idempotency-Replayed': reference('IdempotencyReplayed'),
};
