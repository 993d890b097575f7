import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { ConsumeOptions, Consumption, RecordLog } from '../record-log.ts';
import { isRecordTooLarge } from '../producer.ts';

const IN_FLIGHT_LIMITS = { pauseAt: 1_000, resumeAt: 500 };

/** The contract of RecordLog beyond that of a consumer group (consumer-group.int.test.ts), on Kafka. */
describe('the record log', () => {
  let scratch: ScratchLog;
  let records: RecordLog;
  let topic: string;
  let counter = 0;
  const consumptions: Consumption[] = [];

  beforeAll(async () => {
    scratch = await openScratchLog();
    records = scratch.records;
  });

  afterAll(() => records.close());

  beforeEach(async () => {
    counter += 1;
    topic = await scratch.newTopic(`log-${counter}`);
  });

  // A consumption left behind by a failed test would keep the whole run from ending.
  afterEach(() => Promise.all(consumptions.splice(0).map((each) => each.stop(1_000))));

  async function consume(handle: ConsumeOptions['handle'], more: Partial<ConsumeOptions> = {}) {
    const consumption = await records.consume({
      groupId: `${topic}-group`,
      topics: [topic],
      handle,
      inFlightLimits: IN_FLIGHT_LIMITS,
      ...more,
    });
    consumptions.push(consumption);
    return consumption;
  }

  function publish(keys: readonly string[]): Promise<void> {
    return records.publish(keys.map((key, n) => ({ topic, key, value: Buffer.from(`v${n}`) })));
  }

  it('publishes more for one partition than a broker accepts in one request', async () => {
    const value = Buffer.alloc(16_384, 'x');
    await records.publish(Array.from({ length: 150 }, () => ({ topic, key: 'same', value })));
    let bytes = 0;
    await consume((record) => {
      bytes += record.value.length;
      return Promise.resolve();
    });
    await eventually('all of it', () => bytes === 150 * value.length);
  });

  it('rejects a record that is larger than a broker accepts', async () => {
    const value = Buffer.alloc(2_097_152, 'x');
    const refusal = await records
      .publish([{ topic, key: 'k', value }])
      .catch((error: unknown) => error);
    expect(isRecordTooLarge(refusal)).toBe(true);
    await records.publish([{ topic, key: 'k', value: Buffer.alloc(1) }]);
    expect(records.isConnected()).toBe(true);
  });

  it('handles the records of one partition concurrently and lets them end in any order', async () => {
    await publish(Array<string>(20).fill('same'));
    let running = 0;
    let most = 0;
    const open: (() => void)[] = [];
    await consume(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => open.push(resolve));
      running -= 1;
    });
    await eventually('all in flight at once', () => most === 20);
    for (const finish of open.reverse()) finish();
  });

  it('never has more than the in-flight limit and one fetch in flight, and still reads everything', async () => {
    const keys = Array.from({ length: 300 }, (_, n) => `k${n}`);
    const seen = new Set<string>();
    await consume(
      async ({ key }) => {
        await new Promise((resolve) => setImmediate(resolve));
        seen.add(key);
      },
      { inFlightLimits: { pauseAt: 10, resumeAt: 5 } },
    );
    for (let n = 0; n < keys.length; n += 30) await publish(keys.slice(n, n + 30));
    await eventually('all of them', () => seen.size === keys.length);
  });

  it('limits the records in flight of each topic on its own', async () => {
    const other = await scratch.newTopic(`log-${counter}-fresh`);
    const flood = Array.from({ length: 50 }, (_, n) => `flood-${n}`);
    const open: (() => void)[] = [];
    const fresh: string[] = [];
    await consume(
      async (record) => {
        if (record.topic === other) fresh.push(record.key);
        else await new Promise<void>((resolve) => open.push(resolve));
      },
      { topics: [topic, other], inFlightLimits: { pauseAt: 10, resumeAt: 5 } },
    );
    await publish(flood);
    await eventually('the window of the flood is full', () => open.length >= 10);
    await records.publish([{ topic: other, key: 'fresh', value: Buffer.alloc(0) }]);
    await eventually('the fresh one', () => fresh.length === 1);
    expect(open).toHaveLength(10);
    await eventually('the whole flood', () => {
      for (const finish of open) finish();
      return open.length === flood.length;
    });
  });
});
