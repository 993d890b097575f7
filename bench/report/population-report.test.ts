import { expect, test } from '@jest/globals';
import { populationGoals, populationTables, type PopulationRun } from './population-report.ts';

const second = { second: 0, cores: 0 };

/** 1,000 deliveries in 10 s. */
const RUN: PopulationRun = {
  phase: {
    accepted: 1_001,
    missing: 1,
    parts: {
      'gateway-2': { cpuSeconds: 2, cpuSecondsPer1000: 2, cores: 0.2, residentMiB: 100 },
    },
    usage: {
      'gateway-2': [110, 600, 100].map((residentMiB) => ({ ...second, residentMiB })),
    },
  },
  work: {
    ms: 10_000,
    statements: { 'webhooks/queries': 400, 'apps/queries': 100, 'stats/update': 2_000 },
    mongodb: { find: 500, rare: 0 },
    redis: { get: 3_000 },
    metrics: {
      'gateway-2': {
        'posthorn_store_operation_duration_seconds_count{store="mongodb",operation="find"}': 500,
        'posthorn_store_operation_duration_seconds_count{store="redis",operation="read"}': 100,
        'posthorn_config_cache_requests_total{cache="apps",result="hit"}': 9,
        'posthorn_config_cache_requests_total{cache="apps",result="miss"}': 1,
      },
    },
  },
  metrics: { 'gateway-2': { 'posthorn_memory_used_bytes{part="queue"}': 3 * 2 ** 20 } },
};

test('the goals are the reads for each delivery, and the limit of each process', () => {
  const [reads, memory] = populationGoals(RUN, 'uniform');
  expect(reads).toMatchObject({ measured: 0.5, atMost: 0.5 });
  expect(memory).toMatchObject({ measured: 600, atMost: 512 });
  expect(populationGoals(RUN, 'zipf')[0]).toMatchObject({ atMost: 0.02 });
});

test('the reads are not measured without a delivery', () => {
  const phase = { ...RUN.phase, accepted: 0, missing: 0 };
  expect(populationGoals({ ...RUN, phase }, 'uniform')[0]?.measured).toBeNull();
});

test('the tables have what each process, collection, command and cache did', () => {
  const tables = populationTables(RUN, ['a note']);
  const rowsOf = (title: string) => tables.find((each) => each.title.startsWith(title))?.rows;
  expect(rowsOf('The processes')).toEqual({
    'gateway-2': {
      'CPU s per 1,000': 2,
      'MongoDB/s': 50,
      'Redis/s': 10,
      'Kafka/s': 0,
      'resident MiB': 600,
      'limit MiB': 512,
      'caches and queues MiB': 3,
    },
  });
  expect(rowsOf('MongoDB: statements')).toMatchObject({
    apps: { reads: 10, 'per delivery': 0.1 },
    stats: { update: 200, 'per delivery': 2 },
  });
  expect(rowsOf('MongoDB: commands')).toEqual({ find: { 'per second': 50, 'per delivery': 0.5 } });
  expect(rowsOf('Redis')).toEqual({ get: { 'per second': 300, 'per delivery': 3 } });
  expect(rowsOf('Caches')).toEqual({
    'gateway-2: posthorn_config{cache="apps"}': { requests: 10, 'hits, %': 90 },
  });
});
