import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Registry } from 'prom-client';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import type { ConsumeOptions, Consumption } from '../record-log.ts';

const DELAY_MS = 4_000;
const never = (): Promise<void> => new Promise(() => undefined);

async function valueOf(registry: Registry, name: string, topic: string): Promise<number> {
  const metric = await registry.getSingleMetric(name)?.get();
  return metric?.values.find(({ labels }) => labels.topic === topic)?.value ?? NaN;
}

describe('the backlog of a topic', () => {
  let scratch: ScratchLog;
  let topic: string;
  let group: { groupId: string; topics: string[] };
  let consumption: Consumption | null;
  let counter = 0;

  beforeAll(async () => {
    scratch = await openScratchLog();
  });

  beforeEach(async () => {
    counter += 1;
    topic = await scratch.newTopic(`backlog-${counter}`);
    group = { groupId: `${topic}-group`, topics: [topic] };
    consumption = null;
  });

  afterEach(async () => {
    await consumption?.stop(0);
  });

  afterAll(() => scratch.records.close());

  const publish = (count: number, key = 'a'): Promise<void> =>
    scratch.records.publish(
      Array.from({ length: count }, () => ({ topic, key, value: Buffer.alloc(0) })),
    );

  async function consume(options: Partial<ConsumeOptions>): Promise<void> {
    consumption = await scratch.records.consume({
      ...group,
      handle: () => Promise.resolve(),
      inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
      // The broker is asked for the ends of partitions once a second.
      stallMs: 6_000,
      ...options,
    });
  }

  const ready = () => valueOf(scratch.registry, 'posthorn_ready_records', topic);
  const finished = () => valueOf(scratch.registry, 'posthorn_finished_records_total', topic);
  const ageSeconds = () => valueOf(scratch.registry, 'posthorn_oldest_ready_age_seconds', topic);

  it('counts a record that hangs as one, however many are finished behind it', async () => {
    let isFirst = true;
    await consume({
      handle() {
        const hangs = isFirst;
        isFirst = false;
        return hangs ? never() : Promise.resolve();
      },
    });
    await publish(500);
    await eventually('499 are finished', async () => (await finished()) === 499);
    expect(await ready()).toBe(1);
    await eventually('the age of the one grows', async () => (await ageSeconds()) > 1);
  });

  it('counts what is not read yet, and goes to zero when all is finished', async () => {
    await publish(300, 'a');
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    await consume({ handle: () => ended, inFlightLimits: { pauseAt: 10, resumeAt: 5 } });
    await eventually('all are ready', async () => (await ready()) === 300);
    await publish(100, 'a');
    await eventually('new ones too', async () => (await ready()) === 400);
    expect(await finished()).toBe(0);
    end();
    await eventually('none is ready', async () => (await ready()) === 0);
    expect([await finished(), await ageSeconds()]).toEqual([400, 0]);
  });

  it('counts a record that failed by a fault of the program until it is read again', async () => {
    await consume({ handle: () => Promise.reject(new TypeError('undefined is no function')) });
    await publish(2);
    await eventually('it is still ready', async () => (await ready()) === 2);
    expect(await finished()).toBe(0);
  });

  it('of a delay topic counts nothing that is not due', async () => {
    await publish(400);
    const dueAtMs = Date.now() + DELAY_MS;
    await consume({
      delayMs: () => dueAtMs - Date.now(),
      readiness: { sinceMs: () => dueAtMs, afterMs: () => DELAY_MS },
      handle: never,
      inFlightLimits: { pauseAt: 10, resumeAt: 5 },
    });
    const lag = () => valueOf(scratch.registry, 'posthorn_kafka_consumer_lag_records', topic);
    await eventually('the lag is known', async () => (await lag()) === 400);
    expect([await ready(), await ageSeconds()]).toEqual([0, 0]);
    await eventually('those in memory are due', async () => (await ready()) >= 10);
    await eventually('the others too', async () => (await ready()) === 400);
  });
});
