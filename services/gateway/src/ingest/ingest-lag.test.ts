import { beforeEach, describe, expect, it } from '@jest/globals';
import type { MeasuredLag } from '../history/overview.ts';
import { createIngestLag, sumOf } from './ingest-lag.ts';

/** What the measurements come to; they end when the test says so. */
let measuring: PromiseWithResolvers<MeasuredLag | null>[];
let measured: string[];
let nowMs: number;
let warnings: number;
let lagOf: ReturnType<typeof createIngestLag>;

beforeEach(() => {
  [measuring, measured, nowMs, warnings] = [[], [], 0, 0];
  lagOf = createIngestLag({
    measure(companyId) {
      measured.push(companyId);
      const measurement = Promise.withResolvers<MeasuredLag | null>();
      measuring.push(measurement);
      return measurement.promise;
    },
    monotonicMs: () => nowMs,
    logger: { warn: () => (warnings += 1) },
  });
});

const of = (records: number): MeasuredLag => ({ records, reason: 'backlog' });
const recordsOf = async (companyId: string) => (await lagOf(companyId))?.records ?? null;

async function measureFirst(companyId: string, records: number): Promise<void> {
  const first = lagOf(companyId);
  measuring.at(-1)?.resolve(of(records));
  expect(await first).toEqual(of(records));
}

const turn = () => new Promise(setImmediate);

describe('the lag of ingestion', () => {
  it('is what was measured last, also while Kafka does not answer', async () => {
    await measureFirst('comp_a', 7);
    nowMs = 60_000;
    expect([await recordsOf('comp_a'), await recordsOf('comp_a')]).toEqual([7, 7]);
    expect(measured).toEqual(['comp_a', 'comp_a']);
    measuring[1]?.resolve(of(9));
    await turn();
    expect(await lagOf('comp_a')).toEqual(of(9));
  });

  it('is measured once in 10 s', async () => {
    await measureFirst('comp_a', 7);
    nowMs = 9_999;
    await lagOf('comp_a');
    expect(measured).toHaveLength(1);
  });

  it('is not known while Kafka does not answer the first time, and four companies wait at most', async () => {
    const all = ['a', 'b', 'c', 'd', 'e', 'f', 'a'].map((each) => lagOf(`comp_${each}`));
    expect(new Set(await Promise.all(all))).toEqual(new Set([null]));
    expect(measured).toEqual(['comp_a', 'comp_b', 'comp_c', 'comp_d']);
  });

  it('stays what was measured last after measurements that failed, which are logged once a minute', async () => {
    await measureFirst('comp_a', 1);
    for (const n of [1, 2]) {
      nowMs += 10_000;
      await lagOf('comp_a');
      measuring[n]?.reject(new Error('away'));
      await turn();
    }
    expect([await recordsOf('comp_a'), warnings]).toEqual([1, 1]);
  });

  it('is kept for 1,000 companies', async () => {
    for (let n = 0; n <= 1_000; n += 1) await measureFirst(`comp_${n}`, n);
    expect([await recordsOf('comp_1000'), await recordsOf('comp_1')]).toEqual([1_000, 1]);
    await measureFirst('comp_0', 5);
    expect(measured).toHaveLength(1_002);
  });

  it('has the reason of the partition with the most records, and none without records', () => {
    const lags = [of(3), { records: 5, reason: 'rate_limited' as const }, of(1)];
    expect(sumOf(lags)).toEqual({ records: 9, reason: 'rate_limited' });
    expect(sumOf([{ records: 0, reason: null }])).toEqual({ records: 0, reason: null });
    expect(sumOf([])).toEqual({ records: 0, reason: null });
  });
});
