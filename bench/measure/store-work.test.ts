import { describe, expect, test } from '@jest/globals';
import {
  cacheUse,
  configurationReads,
  growthOf,
  metricCounts,
  redisCounts,
  statementCounts,
} from './store-work.ts';

/** An entry of MongoDB's `top`. */
function entry(counts: Record<string, number>) {
  const none = { queries: 0, commands: 0, getmore: 0, insert: 0, update: 0, remove: 0 };
  const timed = Object.entries({ ...none, ...counts }).map(([name, count]) => [
    name,
    { time: 5, count },
  ]);
  return Object.fromEntries(timed) as object;
}

test('statements are counted by collection, those of all days together, without other databases', () => {
  const counts = statementCounts({
    totals: {
      note: 'all times in microseconds',
      'posthorn.webhooks': entry({ queries: 3, getmore: 1 }),
      'posthorn_messages.2026-11-26': entry({ insert: 4 }),
      'posthorn_messages.2026-11-27': entry({ insert: 5 }),
      'local.oplog.rs': entry({ queries: 7 }),
    },
  });
  expect(growthOf({}, counts)).toEqual({
    'webhooks/queries': 3,
    'webhooks/getmore': 1,
    'posthorn_messages/insert': 9,
  });
});

test('reads of configuration are those of its collections, without writes and change streams', () => {
  const statements = {
    'webhooks/queries': 3,
    'webhooks/getmore': 100,
    'apiKeys/queries': 2,
    'apiKeys/update': 50,
    'apps/commands': 1,
    'posthorn_messages/queries': 9,
  };
  expect(configurationReads(statements)).toBe(6);
});

test('the growth of counts leaves out what has not grown, and counts a new name from 0', () => {
  expect(growthOf({ find: 3, hello: 2 }, { find: 7, hello: 2, insert: 1 })).toEqual({
    find: 4,
    insert: 1,
  });
});

test('commands of Redis are read from its statistics', () => {
  const info =
    '# Commandstats\r\ncmdstat_get:calls=12,usec=34\r\ncmdstat_config|set:calls=1,usec=2\r\n';
  expect(redisCounts(info)).toEqual({ get: 12, 'config|set': 1 });
});

describe('the metrics of a service', () => {
  const TEXT = `# HELP posthorn_config_cache_requests_total Look-ups.
posthorn_config_cache_requests_total{cache="apps",result="hit"} 30
posthorn_config_cache_requests_total{cache="apps",result="miss"} 10
posthorn_config_cache_requests_total{cache="keys",result="hit"} 5
posthorn_lag_seconds_bucket{le="0.1"} 4
posthorn_lag_seconds_count 4
posthorn_ready 1
process_cpu_seconds_total 2
`;

  test('are read by name and labels, without buckets and those of other programs', () => {
    expect(metricCounts(TEXT)).toMatchObject({ posthorn_ready: 1, posthorn_lag_seconds_count: 4 });
    expect(Object.keys(metricCounts(TEXT))).toHaveLength(5);
  });

  test('have the share of hits of each cache', () => {
    expect(cacheUse(metricCounts(TEXT))).toEqual({
      'posthorn_config{cache="apps"}': { requests: 40, hits: 75 },
      'posthorn_config{cache="keys"}': { requests: 5, hits: 100 },
    });
  });
});
