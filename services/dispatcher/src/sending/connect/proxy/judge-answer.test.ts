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
