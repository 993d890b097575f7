import { expect, test } from '@jest/globals';
import {
  cacheUse,
  configurationReads,
  growthOf,
  redisCounts,
  statementCounts,
} from './store-work.ts';

/** An entry of MongoDB's `top`. */
const entry = (counts: Record<string, number>) =>
  Object.fromEntries(
    Object.entries({ total: 9, queries: 0, ...counts }).map(
      ([name, count]) => [name, { time: 5, count }] as const,
    ),
  );

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
  const expected = { 'webhooks/queries': 3, 'webhooks/getmore': 1, 'posthorn_messages/insert': 9 };
  expect(growthOf({}, counts)).toEqual(expected);
});

test('reads of configuration are those of its collections, without writes and change streams', () => {
  const reads = { 'webhooks/queries': 3, 'apiKeys/queries': 2, 'apps/commands': 1 };
  const others = { 'webhooks/getmore': 100, 'apiKeys/update': 50, 'posthorn_messages/queries': 9 };
  expect(configurationReads({ ...reads, ...others })).toBe(6);
});

test('the growth of counts leaves out what has not grown, and counts a new name from 0', () => {
  const after = { find: 7, hello: 2, insert: 1 };
  expect(growthOf({ find: 3, hello: 2 }, after)).toEqual({ find: 4, insert: 1 });
});

test('commands of Redis are read from its statistics', () => {
  const info =
    '# Commandstats\r\ncmdstat_get:calls=12,usec=34\r\ncmdstat_config|set:calls=1,usec=2\r\n';
  expect(redisCounts(info)).toEqual({ get: 12, 'config|set': 1 });
});

test('each cache has its share of hits', () => {
  const use = cacheUse({
    'posthorn_config_cache_requests_total{cache="apps",result="hit"}': 30,
    'posthorn_config_cache_requests_total{cache="apps",result="miss"}': 10,
    'posthorn_config_cache_requests_total{cache="keys",result="hit"}': 5,
    posthorn_ready: 1,
  });
  expect(use).toEqual({
    'posthorn_config{cache="apps"}': { requests: 40, 'hits, %': 75 },
    'posthorn_config{cache="keys"}': { requests: 5, 'hits, %': 100 },
  });
});
