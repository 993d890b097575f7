import { expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createKafkaMetrics } from './kafka-metrics.ts';

test('a process counts as a member of a group while it has joined it', async () => {
  const registry = new Registry();
  const metrics = createKafkaMetrics(registry, Date.now);
  const member = { isJoined: false };
  metrics.show('readers', { isRunning: () => member.isJoined, ready: () => new Map() });
  const shown = async (): Promise<unknown> => {
    const metric = await registry.getSingleMetric('posthorn_kafka_group_members')?.get();
    return metric?.values.map(({ labels, value }) => [labels.group, value]);
  };
  expect(await shown()).toEqual([['readers', 0]]);
  member.isJoined = true;
  expect(await shown()).toEqual([['readers', 1]]);
});
