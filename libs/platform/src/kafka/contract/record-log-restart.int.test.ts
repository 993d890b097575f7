import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../record-log.ts';

const IN_FLIGHT_LIMITS = { pauseAt: 1_000, resumeAt: 500 };

describe('the record log over a stop and a start', () => {
  let scratch: ScratchLog;
  let records: RecordLog;
  let topic: string;
  let counter = 0;

  beforeAll(async () => {
    scratch = await openScratchLog();
    records = scratch.records;
  });

  afterAll(() => records.close());

  beforeEach(async () => {
    counter += 1;
    topic = await scratch.newTopic(`log-${counter}`);
  });

  function consume(handle: ConsumeOptions['handle'], more: Partial<ConsumeOptions> = {}) {
    return records.consume({
      groupId: `${topic}-group`,
      topics: [topic],
      handle,
      inFlightLimits: IN_FLIGHT_LIMITS,
      ...more,
    });
  }

  function publish(keys: readonly string[]): Promise<void> {
    return records.publish(keys.map((key, n) => ({ topic, key, value: Buffer.from(`v${n}`) })));
  }

  const keysOf = (records: readonly LogRecord[]): string[] => records.map(({ key }) => key).sort();

  it('reads a record again after a restart when its handling had not ended, and no other', async () => {
    await publish(['a', 'b', 'c', 'd']);
    const done: string[] = [];
    const first = await consume(async ({ key }) => {
      if (key === 'c') await new Promise(() => undefined);
      done.push(key);
    });
    await eventually('the others', () => done.length === 3);
    await first.stop(0);

    const again: LogRecord[] = [];
    const second = await consume((record) => Promise.resolve(void again.push(record)));
    await eventually('the unfinished one', () => again.some(({ key }) => key === 'c'));
    await second.stop(1_000);
    // Only records behind it in its own partition may be read twice.
    const partition = again.find(({ key }) => key === 'c')?.partition;
    expect(again.every((record) => record.partition === partition)).toBe(true);
  });

  it('ends the records in flight before a stop, and commits them', async () => {
    await publish(['slow']);
    let finish = (): void => undefined;
    let isBegun = false;
    const first = await consume(async () => {
      isBegun = true;
      await new Promise<void>((resolve) => (finish = resolve));
    });
    await eventually('the work begins', () => isBegun);
    const stopped = first.stop(10_000);
    finish();
    await stopped;
    await publish(['later']);
    const rest: LogRecord[] = [];
    const second = await consume((record) => Promise.resolve(void rest.push(record)));
    await eventually('the later one', () => rest.length > 0);
    expect(keysOf(rest)).toEqual(['later']);
    await second.stop(1_000);
  });
});
