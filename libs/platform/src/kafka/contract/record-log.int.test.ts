import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { isRecordTooLarge } from '../producer.ts';
import type { LogRecord } from '../record-log.ts';

/** The contract of RecordLog for one member, beyond that of a consumer group (consumer-group.int.test.ts), on Kafka. */
const scratch = duringTests(openScratchLog, ({ close }) => close());
let topic: string;
let counter = 0;

beforeEach(async () => {
  counter += 1;
  topic = await scratch.newTopic(`log-${counter}`);
});

afterEach(() => scratch.stopMembers());

const publish = (keys: readonly string[]): Promise<void> => scratch.publish(topic, keys);
const keysOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `k${n}`);
const never = (): Promise<void> => new Promise(() => undefined);

describe('the record log', () => {
  it('publishes more for one partition than a broker accepts in one request', async () => {
    const value = Buffer.alloc(16_384, 'x');
    await scratch.records.publish(
      Array.from({ length: 150 }, () => ({ topic, key: 'same', value })),
    );
    let bytes = 0;
    await scratch.consume(topic, (record) => {
      bytes += record.value.length;
      return Promise.resolve();
    });
    await eventually('all of it', () => bytes === 150 * value.length);
  });

  it('publishes copies whose headers are more than a broker accepts in one request', async () => {
    const headers = { authorization: Buffer.alloc(10_000, 'x') };
    const copy = { topic, key: Buffer.from('same'), value: null, headers };
    await scratch.records.publishCopies(Array.from({ length: 200 }, () => copy));
    let records = 0;
    await scratch.consume(topic, () => {
      records += 1;
      return Promise.resolve();
    });
    await eventually('all of them', () => records === 200);
  });

  it('rejects a record that is larger than a broker accepts', async () => {
    const value = Buffer.alloc(2_097_152, 'x');
    const refusal = await scratch.records
      .publish([{ topic, key: 'k', value }])
      .catch((error: unknown) => error);
    expect(isRecordTooLarge(refusal)).toBe(true);
    await publish(['k']);
    expect(scratch.records.isConnected()).toBe(true);
  });

  it('handles the records of one partition concurrently, and they end in any order', async () => {
    await publish(Array<string>(20).fill('same'));
    let running = 0;
    let most = 0;
    const open: (() => void)[] = [];
    await scratch.consume(topic, async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => open.push(resolve));
      running -= 1;
    });
    await eventually('all in flight at once', () => most === 20);
    for (const finish of open.reverse()) finish();
  });

  it('never has more than the in-flight limit and one fetch in flight, and still reads everything', async () => {
    const keys = keysOf(300);
    const seen = new Set<string>();
    await scratch.consume(
      topic,
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
    const flood = keysOf(50);
    const open: (() => void)[] = [];
    const fresh: string[] = [];
    await scratch.consume(
      topic,
      async (record) => {
        if (record.topic === other) fresh.push(record.key);
        else await new Promise<void>((resolve) => open.push(resolve));
      },
      { topics: [topic, other], inFlightLimits: { pauseAt: 10, resumeAt: 5 } },
    );
    await publish(flood);
    await eventually('the window of the flood is full', () => open.length >= 10);
    await scratch.publish(other, ['fresh']);
    await eventually('the fresh one', () => fresh.length === 1);
    expect(open).toHaveLength(10);
    await eventually('the whole flood', () => {
      for (const finish of open) finish();
      return open.length === flood.length;
    });
  });

  it('marks the records that a former owner may have begun, and not the later ones', async () => {
    const seen: LogRecord[] = [];
    await publish(['same']);
    await scratch.consume(topic, (record) => Promise.resolve(void seen.push(record)));
    await eventually('the early one', () => seen.length === 1);
    await publish(['same']);
    await eventually('the late one', () => seen.length === 2);
    expect(seen.map(({ isInherited }) => isInherited)).toEqual([true, false]);
  });

  it('ends the records in flight before a stop, and commits them', async () => {
    await publish(['slow']);
    let finish = (): void => undefined;
    let isBegun = false;
    const first = await scratch.consume(topic, async () => {
      isBegun = true;
      await new Promise<void>((resolve) => (finish = resolve));
    });
    await eventually('the work begins', () => isBegun);
    const stopped = first.stop(10_000);
    finish();
    await stopped;
    await publish(['later']);
    const seen: string[] = [];
    await scratch.consume(topic, ({ key }) => Promise.resolve(void seen.push(key)));
    await eventually('the later one', () => seen.length > 0);
    expect(seen).toEqual(['later']);
  });
});

describe('the backlog of a topic', () => {
  const DELAY_MS = 8_000;
  /** The broker is asked for the ends of partitions once a second, and no time counts: no member is replaced. */
  const OFTEN = { stallMs: 6_000, areStoresUp: () => false };

  async function metric(name: string): Promise<number> {
    const found = await scratch.registry.getSingleMetric(name)?.get();
    return found?.values.find(({ labels }) => labels.topic === topic)?.value ?? NaN;
  }

  const ready = () => metric('posthorn_ready_records');
  const finished = () => metric('posthorn_finished_records_total');
  const ageSeconds = () => metric('posthorn_oldest_ready_age_seconds');
  const publishMany = (count: number): Promise<void> => publish(Array<string>(count).fill('same'));

  it('counts a record that hangs as one, however many are finished behind it', async () => {
    let isFirst = true;
    const handle = (): Promise<void> => {
      const hangs = isFirst;
      isFirst = false;
      return hangs ? never() : Promise.resolve();
    };
    await scratch.consume(topic, handle, OFTEN);
    await publishMany(500);
    await eventually('499 are finished', async () => (await finished()) === 499);
    expect(await ready()).toBe(1);
    await eventually('the age of the one grows', async () => (await ageSeconds()) > 1);
  });

  it('counts what is not read yet, and goes to zero when all is finished', async () => {
    await publishMany(300);
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const inFlightLimits = { pauseAt: 10, resumeAt: 5 };
    await scratch.consume(topic, () => ended, { ...OFTEN, inFlightLimits });
    await eventually('all are ready', async () => (await ready()) === 300);
    await publishMany(100);
    await eventually('new ones too', async () => (await ready()) === 400);
    expect(await finished()).toBe(0);
    end();
    await eventually('none is ready', async () => (await ready()) === 0);
    expect([await finished(), await ageSeconds()]).toEqual([400, 0]);
  });

  it('counts a record that failed by a fault of the program until it is read again', async () => {
    const fail = (): Promise<never> => Promise.reject(new TypeError('undefined is no function'));
    await scratch.consume(topic, fail, OFTEN);
    await publishMany(2);
    await eventually('it is still ready', async () => (await ready()) === 2);
    expect(await finished()).toBe(0);
  });

  it('of a delay topic counts nothing that is not due', async () => {
    await publishMany(400);
    // From the first record that is read: a group takes some time to form.
    let dueAtMs: number | null = null;
    const dueAt = (): number => (dueAtMs ??= Date.now() + DELAY_MS);
    await scratch.consume(topic, never, {
      ...OFTEN,
      delayMs: () => dueAt() - Date.now(),
      readiness: { sinceMs: dueAt, afterMs: () => DELAY_MS },
      inFlightLimits: { pauseAt: 10, resumeAt: 5 },
    });
    const lag = () => metric('posthorn_kafka_consumer_lag_records');
    await eventually('the lag is known', async () => (await lag()) === 400);
    expect([await ready(), await ageSeconds()]).toEqual([0, 0]);
    await eventually('those in memory are due', async () => (await ready()) >= 10);
    await eventually('the others too', async () => (await ready()) === 400);
  });
});
