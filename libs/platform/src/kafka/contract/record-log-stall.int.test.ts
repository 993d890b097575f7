import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { GroupClient } from '../consumer/group-client.ts';
import type { ConsumeOptions, LogRecord, RecordLog } from '../record-log.ts';

const STALL_MS = 1_500;

describe('a consumer that stalls', () => {
  let scratch: ScratchLog;
  let records: RecordLog;
  let topic: string;
  let consumers: GroupClient[];
  let counter = 0;

  beforeAll(async () => {
    scratch = await openScratchLog({ onMember: (member) => consumers.push(member) });
    records = scratch.records;
  });

  afterAll(() => records.close());

  beforeEach(async () => {
    consumers = [];
    counter += 1;
    topic = await scratch.newTopic(`stall-${counter}`);
  });

  function consume(handle: ConsumeOptions['handle'], more: Partial<ConsumeOptions> = {}) {
    return records.consume({
      groupId: `${topic}-group`,
      topics: [topic],
      handle,
      stallMs: STALL_MS,
      inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
      ...more,
    });
  }

  const publish = (...keys: string[]): Promise<void> =>
    records.publish(keys.map((key) => ({ topic, key, value: Buffer.alloc(0) })));

  it('is replaced when a record never ends, and ignores its late end', async () => {
    await publish('stuck');
    const begun: LogRecord[] = [];
    let endFirst = (): void => undefined;
    const consumption = await consume(async (record) => {
      begun.push(record);
      if (begun.length === 1) await new Promise<void>((resolve) => (endFirst = resolve));
    });
    await eventually('it is read again', () => begun.length === 2);
    expect(begun[1]).toMatchObject({ offset: begun[0]?.offset, isInherited: true });
    endFirst();
    await publish('stuck');
    await eventually('the next one', () => begun.length === 3);
    expect([consumers.length, consumption.isAlive(), consumption.isRunning()]).toEqual([
      ...[2, true, true],
    ]);
    await consumption.stop(1_000);
  });

  it('is replaced when the client stops fetching, and reports its lag meanwhile', async () => {
    const seen: string[] = [];
    const consumption = await consume(({ key }) => Promise.resolve(void seen.push(key)));
    await publish('before');
    await eventually('the first', () => seen.length === 1);
    consumers[0]?.pause([{ topic, partitions: [0, 1, 2] }]);
    await publish('after');
    const lagOf = async () => {
      const name = 'posthorn_kafka_consumer_lag_records';
      const { values } = (await scratch.registry.getSingleMetric(name)?.get()) ?? {};
      return values?.find(({ labels }) => labels.topic === topic)?.value;
    };
    await eventually('the lag is known', async () => (await lagOf()) === 1);
    await eventually('the second', () => seen.length === 2);
    expect([seen, consumers.length]).toEqual([['before', 'after'], 2]);
    await eventually('the lag is gone', async () => (await lagOf()) === 0);
    await consumption.stop(1_000);
  });

  it('is not alive when the new consumer stalls too, and stops in time', async () => {
    await publish('stuck');
    const consumption = await consume(() => new Promise(() => undefined));
    await eventually('a new consumer', () => consumers.length === 2);
    expect(consumption.isAlive()).toBe(true);
    await eventually('no life left', () => !consumption.isAlive());
    expect(consumers).toHaveLength(2);
    await consumption.stop(0);
  });

  it('is not replaced while a store is away, nor while its next record is not due', async () => {
    await publish('stuck', 'late');
    let looks = 0;
    const areStoresUp = (): boolean => {
      looks += 1;
      return false;
    };
    const away = await consume(() => new Promise(() => undefined), { areStoresUp });
    const delayed = await consume(() => Promise.resolve(), {
      groupId: `${topic}-late`,
      delayMs: () => 60_000,
    });
    // A check comes at every sixth of the stall time: three times that time is ample.
    await eventually('many looks', () => looks >= 36);
    expect([consumers.length, away.isAlive(), delayed.isAlive()]).toEqual([2, true, true]);
    await Promise.all([away.stop(0), delayed.stop(0)]);
  });

  it('can be stopped while it is replaced', async () => {
    await publish('stuck');
    const consumption = await consume(() => new Promise(() => undefined));
    await eventually('a new consumer', () => consumers.length === 2);
    await consumption.stop(0);
    expect(consumption.isRunning()).toBe(false);
    const seen: string[] = [];
    const next = await consume(({ key }) => Promise.resolve(void seen.push(key)));
    await eventually('its record', () => seen.length === 1);
    await next.stop(1_000);
  });
});
