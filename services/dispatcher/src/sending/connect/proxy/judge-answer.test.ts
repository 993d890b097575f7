import { expect, test } from '@jest/globals';
import { judgeAnswer, type TunnelResult } from './judge-answer.ts';

test.each<[number, TunnelResult]>([
  [200, 'opened'],
  [204, 'opened'],
  [301, 'fault'],
  [400, 'fault'],
  [403, 'refused'],
  [404, 'fault'],
  [407, 'fault'],
  [429, 'fault'],
  [500, 'unreachable'],
  [502, 'unreachable'],
  [503, 'unreachable'],
  [504, 'timeout'],
])('an answer of %d to CONNECT means: %s', (statusCode, result) => {
  expect(judgeAnswer(statusCode, {})).toBe(result);
});

test('a 407 by which Smokescreen refuses the endpoint is no fault of the proxy', () => {
  expect(judgeAnswer(407, { 'x-smokescreen-error': 'denied by rule' })).toBe('refused');
});

test.each<[string, TunnelResult]>([
  ['squid; error=connection_refused', 'unreachable'],
  ['squid; error="connection_refused"; details="111"', 'unreachable'],
  ['squid; error=connection_limit_reached', 'fault'],
  ['edge; received-status=503, squid;error=proxy_internal_error; details="no threads"', 'fault'],
  ['far; error=proxy_internal_error, near; error=destination_unavailable', 'unreachable'],
])('a 503 with Proxy-Status: %s means: %s', (proxyStatus, result) => {
  expect(judgeAnswer(503, { 'proxy-status': proxyStatus })).toBe(result);
});

test('a 503 of an overloaded Envoy is a fault of the proxy', () => {
  expect(judgeAnswer(503, { 'x-envoy-overloaded': 'true' })).toBe('fault');
});
