import { beforeEach, expect, test } from '@jest/globals';
import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { Registry } from 'prom-client';
import { createOutageWatch, type OutageWatch } from './watch-outages.ts';

let registry: Registry;
let watch: OutageWatch;
let keepTrying: KeepTrying;

/** Tries once. */
const once: KeepTrying = (_purpose, step) => step();

beforeEach(() => {
  registry = new Registry();
  watch = createOutageWatch(registry);
  keepTrying = watch.watch(once);
});

const succeed = (purpose: string): Promise<unknown> => keepTrying(purpose, () => Promise.resolve());
const fail = (purpose: string, error: Error): Promise<unknown> =>
  keepTrying(purpose, () => Promise.reject(error)).catch(() => undefined);
const noMajority = new Error('waiting for replication timed out');

test('there is an outage from the first failure of a step to its next success', async () => {
  await succeed('record outcomes');
  expect(watch.isOutage()).toBe(false);
  await fail('record outcomes', noMajority);
  expect(watch.isOutage()).toBe(true);
  await succeed('look up recorded attempts');
  expect(watch.isOutage()).toBe(true);
  await succeed('record outcomes');
  expect(watch.isOutage()).toBe(false);
});

test('a fault of the program is no outage', async () => {
  await fail('record outcomes', new TypeError('undefined is no function'));
  expect(watch.isOutage()).toBe(false);
});

test('the metrics name the steps that fail', async () => {
  await fail('record outcomes', noMajority);
  await succeed('look up webhooks');
  const { values } = (await registry.getSingleMetric('posthorn_failing_steps')?.get()) ?? {};
  expect(values?.map(({ labels, value }) => [labels.step, value])).toEqual([
    ['record outcomes', 1],
    ['look up webhooks', 0],
  ]);
});
