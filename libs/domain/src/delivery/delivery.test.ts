import { describe, expect, test } from '@jest/globals';
import { awaitsAttempt, isFinal, outcomeOfErrorCode, outcomeOfStatus, refOf } from './delivery.ts';

describe('a delivery awaits an attempt', () => {
  test('when it has no document yet', () => {
    expect(awaitsAttempt(undefined, 1)).toBe(true);
  });

  test('when it is pending and has fewer attempts', () => {
    expect(awaitsAttempt({ status: 'pending', attemptCount: 1 }, 2)).toBe(true);
    expect(awaitsAttempt({ status: 'pending', attemptCount: 2 }, 2)).toBe(false);
    expect(awaitsAttempt({ status: 'pending', attemptCount: 3 }, 2)).toBe(false);
  });

  test.each(['delivered', 'exhausted', 'cancelled'] as const)(
    'never when it is %s, which is final',
    (status) => {
      expect(isFinal(status)).toBe(true);
      expect(awaitsAttempt({ status, attemptCount: 1 }, 2)).toBe(false);
    },
  );
});

test('only a pending delivery is not final', () => {
  expect(isFinal('pending')).toBe(false);
});

test('a reference has none of the other fields of its source', () => {
  const ref = {
    messageId: 'msg_1',
    webhookId: 'wh_1',
    companyId: 'comp_1',
    appId: null,
    createdAtMs: 1,
  };
  expect(refOf({ ...ref, attemptNumber: 3 } as typeof ref)).toEqual(ref);
});

describe('the outcome of a status', () => {
  test('is success from 200 to 299 and nowhere else', () => {
    const successes = Array.from({ length: 500 }, (_, index) => index + 100).filter(
      (status) => outcomeOfStatus(status) === 'success',
    );
    expect(successes).toEqual(Array.from({ length: 100 }, (_, index) => index + 200));
  });

  test.each([
    [300, 'http_3xx'],
    [304, 'http_3xx'],
    [399, 'http_3xx'],
    [400, 'http_4xx'],
    [410, 'http_4xx'],
    [428, 'http_4xx'],
    [429, 'http_429'],
    [430, 'http_4xx'],
    [499, 'http_4xx'],
    [500, 'http_5xx'],
    [599, 'http_5xx'],
    [999, 'http_5xx'],
  ])('of %d is %s', (status, outcome) => {
    expect(outcomeOfStatus(status)).toBe(outcome);
  });
});

describe('the outcome of an error code', () => {
  test.each([
    ['EGRESS_BLOCKED', 'egress_blocked'],
    ['ATTEMPT_TIMEOUT', 'timeout'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
    ['UND_ERR_BODY_TIMEOUT', 'timeout'],
    ['ETIMEDOUT', 'timeout'],
    ['UND_ERR_HEADERS_OVERFLOW', 'response_too_large'],
    ['LOOKUP_FAILED', 'dns_error'],
    ['ENOTFOUND', 'dns_error'],
    ['EAI_AGAIN', 'dns_error'],
    ['ECONNREFUSED', 'connect_error'],
    ['ECONNRESET', 'connect_error'],
    ['EHOSTUNREACH', 'connect_error'],
    ['UND_ERR_SOCKET', 'connect_error'],
    ['HPE_INVALID_CONSTANT', 'connect_error'],
    ['EPROTO', 'tls_error'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_error'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls_error'],
    ['CERT_HAS_EXPIRED', 'tls_error'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls_error'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_error'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls_error'],
    ['UNKNOWN', 'connect_error'],
    ['', 'connect_error'],
  ])('%s is %s', (code, outcome) => {
    expect(outcomeOfErrorCode(code)).toBe(outcome);
  });
});
