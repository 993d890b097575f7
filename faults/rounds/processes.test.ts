import { expect, test } from '@jest/globals';
import { inFlightAt } from './processes.ts';

test('a request is in flight at a kill from 0.6 s before the signal until the process has exited and its requests are read', () => {
  const killed = { sinceMs: 10_000, untilMs: 10_040 };
  expect(inFlightAt(killed, 'the kill of dispatcher-1')).toEqual({
    reason: 'in flight at the kill of dispatcher-1',
    fromMs: 9_400,
    toMs: 10_140,
  });
});
