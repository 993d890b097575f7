import { beforeEach, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../test/support/during-tests.ts';
import { createNamespace } from '../../../../test/support/process/namespace.ts';
import { REDIS_KINDS } from '../../../../test/support/stores/tested-redis.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import {
  createReadingPositions,
  REPORT_VALID_MS,
  type ReadingPositions,
} from './reading-positions.ts';

describe.each(REDIS_KINDS)('the positions of dispatchers in %s', (_kind, open) => {
  const env = createNamespace();
  const store = duringTests(open, ({ stop }) => stop());
  let prefix: string;
  let positions: ReadingPositions;
  let round = 0;
  let nowMs: number;

  beforeEach(() => {
    prefix = `${env.REDIS_PREFIX}${(round += 1)}:`;
    nowMs = 100_000;
    positions = createReadingPositions(store.redis, prefix, () => nowMs);
  });

  it('are those that were reported last, of the partitions that are asked for', async () => {
    positions.report(new Map([0, 1, 2].map((partition) => [partition, 1_000 + partition])));
    positions.report(new Map([[1, 2_000]]));
    const read = () => positions.read(new Set([1, 2, 7]));
    await eventually('both reports', async () => (await read()).get(1) === 2_000);
    expect([...(await read())]).toEqual([
      [1, 2_000],
      [2, 1_002],
      [7, null],
    ]);
  });

  it('are null in a partition whose report has not been repeated', async () => {
    const read = () => positions.read(new Set([1, 2]));
    positions.report(new Map([[1, 2_000]]));
    await eventually('the report', async () => (await read()).get(1) === 2_000);
    nowMs += REPORT_VALID_MS + 1;
    positions.report(new Map([[2, 2_000]]));
    await eventually('the other report', async () => (await read()).get(2) === 2_000);
    expect((await read()).get(1)).toBeNull();
  });

  it('expire when no dispatcher reports any more', async () => {
    positions.report(new Map([[1, 2_000]]));
    const key = `${prefix}reading-positions`;
    await eventually('the time to live', async () => (await store.redis.pttl(key)) > 0);
    expect(await store.redis.pttl(key)).toBeLessThanOrEqual(300_000);
  });
});
