import { expect, test } from '@jest/globals';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createRegistry } from './metrics.ts';

const LAG = /^nodejs_eventloop_lag_(?:min|max|mean|stddev|p50|p90|p99)_seconds (.*)$/gm;

test('The lag of the event loop is a number in every scrape, however soon it follows another one', async () => {
  const registry = createRegistry('test');
  const scrape = async (): Promise<number[]> =>
    [...(await registry.metrics()).matchAll(LAG)].map(([, value]) => Number(value));
  expect(await scrape()).toEqual([0, 0, 0, 0, 0, 0, 0]);
  await eventually('a measurement', async () => {
    const scrapes = await Promise.all([scrape(), scrape()]);
    expect(scrapes.flat().every((seconds) => seconds >= 0 && seconds < 60)).toBe(true);
    return scrapes.flat().some((seconds) => seconds > 0);
  });
});

test('The lag of the event loop does not contain the time between two measurements', async () => {
  const registry = createRegistry('test');
  await eventually('measurements', async () => {
    const text = await registry.metrics();
    const [, least = ''] = /^nodejs_eventloop_lag_min_seconds (.*)$/m.exec(text) ?? [];
    const [, most = '0'] = /^nodejs_eventloop_lag_max_seconds (.*)$/m.exec(text) ?? [];
    return Number(most) > 0 && Number(least) < 0.2;
  });
});
