import type { IncomingHttpHeaders } from 'node:http';

/** What came of a CONNECT request. The values are labels of `posthorn_proxy_tunnels_total`. */
export const TUNNEL_RESULTS = [
  'opened',
  // The proxy could not connect to the endpoint.
  'unreachable',
  // The endpoint did not answer the proxy in time.
  'timeout',
  // A rule of the proxy refuses the endpoint.
  'refused',
  // The proxy itself failed. This is never charged to the endpoint.
  'fault',
] as const;

export type TunnelResult = (typeof TUNNEL_RESULTS)[number];

/** Smokescreen refuses an endpoint with 407 and this header; a 407 alone says that our password is wrong. */
const SMOKESCREEN_REFUSAL = 'x-smokescreen-error';

/** The types of errors of Proxy-Status that are the proxy's own (RFC 9209, section 2.3). */
const OWN_ERRORS = new Set([
  'connection_limit_reached',
  'proxy_internal_error',
  'proxy_internal_response',
  'proxy_configuration_error',
  'proxy_loop_detected',
]);
/** The last proxy of several is the last in the list, and the nearest to us. */
const ERROR_TYPE = /;\s*error=([\w-]+)/g;

/** True when the proxy says that it failed itself: in Proxy-Status, or, as Envoy does, that it is overloaded. */
function saysItFailed(headers: IncomingHttpHeaders): boolean {
  const types = String(headers['proxy-status'] ?? '').matchAll(ERROR_TYPE);
  const last = [...types].at(-1)?.[1];
  return (
    headers['x-envoy-overloaded'] !== undefined || (last !== undefined && OWN_ERRORS.has(last))
  );
}

/**
 * Returns what the answer of a proxy to CONNECT means (RFC 9110, section 9.3.6). There is no standard for
 * failures, see docs/decisions/0028-strict-endpoints.md for what common proxies answer.
 */
export function judgeAnswer(statusCode: number, headers: IncomingHttpHeaders): TunnelResult {
  if (statusCode >= 200 && statusCode <= 299) return 'opened';
  if (saysItFailed(headers)) return 'fault';
  if (statusCode === 504) return 'timeout';
  if (statusCode >= 500) return 'unreachable';
  if (statusCode === 403) return 'refused';
  if (statusCode === 407 && headers[SMOKESCREEN_REFUSAL] !== undefined) return 'refused';
  return 'fault';
}
