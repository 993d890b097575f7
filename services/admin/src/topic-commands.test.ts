import { expect, test } from '@jest/globals';
import { driftTable } from './topic-commands.ts';

test('each difference has a line with the values, what they mean and what mends them', () => {
  const retry = { topic: 'p.retry.5s', setting: 'retention.ms', value: '60000' } as const;
  const lane = { topic: 'p.slow-lane', setting: 'partitions', value: '24' } as const;
  const table = driftTable([
    { ...retry, wanted: '604805000', severity: 'refuse', meaning: 'too short', remedy: 'apply' },
    { ...lane, wanted: '12', severity: 'warn', meaning: 'more', remedy: 'add-partitions' },
  ]);
  expect(table.split('\n')).toEqual([
    'TOPIC        SETTING       VALUE       WANTED                      MEANING',
    'p.retry.5s   retention.ms  60000 (1m)  604805000 (7d 5s)  REFUSED  too short → topics apply',
    'p.slow-lane  partitions    24          12                 warning  more → docs/partitions.md',
  ]);
});
