/** How an attempt ended. The values are labels of the metrics, so the list is closed. */
export const OUTCOMES = [
  'success',
  'http_3xx',
  'http_4xx',
  'http_429',
  'http_5xx',
  'timeout',
  'dns_error',
  'connect_error',
  'tls_error',
  'egress_blocked',
  'response_too_large',
  'aborted',
  // No access token: nothing was sent to the endpoint.
  'token_failed',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** Only a status from 200 to 299 is a successful delivery (docs/contract.md C10.2). */
export function outcomeOfStatus(statusCode: number): Outcome {
  if (statusCode >= 200 && statusCode <= 299) return 'success';
  if (statusCode === 429) return 'http_429';
  if (statusCode >= 500) return 'http_5xx';
  if (statusCode >= 400) return 'http_4xx';
  return 'http_3xx';
}

const BY_CODE: Readonly<Record<string, Outcome>> = {
  EGRESS_BLOCKED: 'egress_blocked',
  ATTEMPT_TIMEOUT: 'timeout',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'response_too_large',
  HPE_HEADER_OVERFLOW: 'response_too_large',
  RESPONSE_HEAD_TOO_LARGE: 'response_too_large',
  LOOKUP_FAILED: 'dns_error',
  ENOTFOUND: 'dns_error',
  EAI_AGAIN: 'dns_error',
  EAI_FAIL: 'dns_error',
  ENODATA: 'dns_error',
  EPROTO: 'tls_error',
};

/** The outcome of an attempt without a status, by the `code` of its error (Node, OpenSSL, undici, ours). */
export function outcomeOfErrorCode(code: string): Outcome {
  const known = BY_CODE[code];
  if (known) return known;
  return TLS_CODE.test(code) ? 'tls_error' : 'connect_error';
}

const TLS_CODE =
  /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/;
