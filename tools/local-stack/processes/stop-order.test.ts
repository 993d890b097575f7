import { expect, test } from '@jest/globals';
import { inStopOrder } from './stop-order.ts';

test('one-shot programs stop first, then the gateway, the other services and the stores', () => {
  const names = ['kafka', 'redis', 'retry', 'wineboot', 'mongodb', 'gateway', 'dispatcher'];
  expect(inStopOrder(names.map((name) => ({ name }))).map(({ name }) => name)).toEqual([
    'wineboot',
    'gateway',
    'dispatcher',
    'retry',
    'redis',
    'mongodb',
    'kafka',
  ]);
});
