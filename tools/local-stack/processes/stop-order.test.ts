import { expect, test } from '@jest/globals';
import { inStopOrder } from './stop-order.ts';

test('services stop before stores, the gateway first, and one-shot programs before all', () => {
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
