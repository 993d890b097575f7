import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS, type TestedRedis } from '../../../../test/support/stores/tested-redis.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { createIngestReports, type IngestReports } from './ingest-reports.ts';

describe.each(REDIS_KINDS)('the reports of ingestion in %s', (_kind, open) => {
  const env = createNamespace();
  const at = (topic: string, partition: number) => ({ topic, partition });
  const LIMITED = { reason: 'rate_limited', perSecond: 12.5 } as const;
  const READING = { reason: 'backlog', perSecond: 900 } as const;
  let store: TestedRedis;
  let prefix: string;
  let reports: IngestReports;
  let round = 0;

  beforeAll(async () => {
    store = await open();
  });

  beforeEach(() => {
    prefix = `${env.REDIS_PREFIX}${(round += 1)}:`;
    reports = createIngestReports(store.redis, prefix);
  });

  afterAll(() => store.stop());

  it('are those of the partitions that are asked for, in their cluster', async () => {
    reports.report('', [
      { ...at('orders', 0), report: LIMITED },
      { ...at('orders', 1), report: READING },
      { ...at('bills', 0), report: READING },
    ]);
    const asked = [at('orders', 0), at('orders', 7), at('bills', 0)];
    await eventually('both topics', async () => (await reports.read('', asked)).size === 2);
    expect(Object.fromEntries(await reports.read('', asked))).toEqual({
      'orders/0': LIMITED,
      'bills/0': READING,
    });
    expect(await reports.read('kafka-eu:9093', asked)).toEqual(new Map());
    expect(await reports.read('', [])).toEqual(new Map());
  });

  it('are forgotten within 10 s', async () => {
    const asked = [at('orders', 0)];
    reports.report('', [{ ...at('orders', 0), report: LIMITED }]);
    await eventually('the report', async () => (await reports.read('', asked)).size === 1);
    const left = await store.redis.pttl(`${prefix}ingest-reports:/orders/0`);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(10_000);
  });

  it('are none where the text is of another version', async () => {
    await store.redis.set(`${prefix}ingest-reports:/orders/0`, 'later_reason/0');
    expect(await reports.read('', [at('orders', 0)])).toEqual(new Map());
  });
});
