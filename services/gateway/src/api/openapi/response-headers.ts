import { CHALLENGE } from '../../http/send-error.ts';
import type { JsonSchema } from './json-schemas.ts';

export type ResponseHeaders = Record<string, JsonSchema>;

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

export const COMMON_HEADERS: ResponseHeaders = {
  'X-Request-Id': reference('RequestId'),
  RateLimit: reference('RateLimit'),
  'RateLimit-Policy': reference('RateLimitPolicy'),
};

export const RETRY_AFTER: ResponseHeaders = { 'Retry-After': reference('RetryAfter') };

export const WWW_AUTHENTICATE: ResponseHeaders = {
  'WWW-Authenticate': reference('WwwAuthenticate'),
};

export const IDEMPOTENCY_REPLAYED: ResponseHeaders = {
  'Idempotency-Replayed': reference('IdempotencyReplayed'),
};
