import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { KAFKA_CLIENTS } from '../../service/kafka-clients.ts';
import type { ConsumeOptions, Consumption, LogRecord, RecordLog } from '../record-log.ts';
import { isRecordTooLarge } from '../publishing/record-too-large.ts';

const IN_FLIGHT_LIMITS = { pauseAt: 1_000, resumeAt: 500 };

/** The contract of RecordLog, tested on Kafka with either client. */
describe.each(KAFKA_CLIENTS)('the record log, on %s', (client) => {
  let scratch: ScratchLog;
  let records: RecordLog;
  let topic: string;
  let counter = 0;
  const consumptions: Consumption[] = [];

  beforeAll(async () => {
    scratch = await openScratchLog({ client });
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

  it('delivers what was published, with unchanged bytes and headers', async () => {
    const value = Buffer.from([0, 10, 255, 13]);
    await records.publish([{ topic, key: 'k', value, headers: { requestId: 'request-1' } }]);
    const got: LogRecord[] = [];
    await consume((record) => Promise.resolve(void got.push(record)));
    await eventually('the record', () => got.length === 1);
    expect(got[0]).toMatchObject({ topic, key: 'k', value, headers: { requestId: 'request-1' } });
  });

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

  it('handles a record again after an outage, and the others meanwhile', async () => {
    await publish(['a', 'bad', 'z']);
    const done: string[] = [];
    let failures = 0;
    await consume(({ key }) => {
      if (key === 'bad' && (failures < 2 || done.length < 2)) {
        failures += 1;
        return Promise.reject(new Error('not now'));
      }
      done.push(key);
      return Promise.resolve();
    });
    await eventually('all of them', () => done.length === 3);
    expect(failures).toBeGreaterThanOrEqual(2);
  });

  it('delays a partition until its next record is due, and no other partition', async () => {
    await publish(['late', 'now-1', 'now-2', 'now-3']);
    const at = new Map<string, number>();
    let dueAtMs = Number.POSITIVE_INFINITY;
    const askAgainMs = 100;
    await consume(({ key }) => Promise.resolve(void at.set(key, Date.now())), {
      delayMs: ({ key }) => (key === 'late' ? Math.min(dueAtMs - Date.now(), askAgainMs) : 0),
    });
    await eventually('another partition', () => at.size > 0);
    expect([...at.keys()]).not.toContain('late');
    dueAtMs = Date.now() + 500;
    await eventually('the late one', () => at.has('late'));
    expect(at.get('late')).toBeGreaterThanOrEqual(dueAtMs);
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

  it('sends one key always to one partition, and assigns partition p of two topics to one member', async () => {
    const other = await scratch.newTopic(`log-${counter}-twin`);
    const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
    const owners = new Map<string, Set<string>>();
    const member = (name: string) =>
      consume(
        ({ key }) =>
          Promise.resolve(void owners.set(key, (owners.get(key) ?? new Set()).add(name))),
        { topics: [topic, other] },
      );
    const members = [await member('one'), await member('two')];
    await eventually('both are members', () => members.every((each) => each.isRunning()));
    await records.publish(
      keys.flatMap((key) =>
        [topic, other].map((to) => ({ topic: to, key, value: Buffer.from('') })),
      ),
    );
    await eventually('every key', () => owners.size === keys.length);
    expect([...owners.values()].every((names) => names.size === 1)).toBe(true);
  });
});
