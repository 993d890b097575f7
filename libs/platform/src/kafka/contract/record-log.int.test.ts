import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { KAFKA_CLIENTS } from '../../service/kafka-clients.ts';
import type { ConsumeOptions, Consumption, LogRecord, RecordLog } from '../record-log.ts';
import { isTooLarge } from '../too-large.ts';

const WINDOW = { high: 1_000, low: 500 };

/** What every record log must do; Kafka is the one there is, by either client. */
describe.each(KAFKA_CLIENTS)('the record log, on %s', (client) => {
  let scratch: ScratchLog;
  let log: RecordLog;
  let topic: string;
  let counter = 0;
  const consumptions: Consumption[] = [];

  beforeAll(async () => {
    scratch = await openScratchLog({ client });
    log = scratch.log;
  });

  afterAll(() => log.close());

  beforeEach(async () => {
    counter += 1;
    topic = await scratch.newTopic(`log-${counter}`);
  });

  // A consumption that a failed test leaves behind would keep the whole run from ending.
  afterEach(() => Promise.all(consumptions.splice(0).map((each) => each.stop(1_000))));

  async function consume(handle: ConsumeOptions['handle'], more: Partial<ConsumeOptions> = {}) {
    const consumption = await log.consume({
      groupId: `${topic}-group`,
      topics: [topic],
      handle,
      window: WINDOW,
      ...more,
    });
    consumptions.push(consumption);
    return consumption;
  }

  function publish(keys: readonly string[]): Promise<void> {
    return log.publish(keys.map((key, n) => ({ topic, key, value: Buffer.from(`v${n}`) })));
  }

  it('hands over what was published, bytes and headers as they were', async () => {
    const value = Buffer.from([0, 10, 255, 13]);
    await log.publish([{ topic, key: 'k', value, headers: { requestId: 'request-1' } }]);
    const got: LogRecord[] = [];
    await consume((record) => Promise.resolve(void got.push(record)));
    await eventually('the record', () => got.length === 1);
    expect(got[0]).toMatchObject({ topic, key: 'k', value, headers: { requestId: 'request-1' } });
  });

  it('publishes more for one partition than a broker takes at once', async () => {
    const value = Buffer.alloc(16_384, 'x');
    await log.publish(Array.from({ length: 150 }, () => ({ topic, key: 'same', value })));
    let bytes = 0;
    await consume((record) => {
      bytes += record.value.length;
      return Promise.resolve();
    });
    await eventually('all of it', () => bytes === 150 * value.length);
  });

  it('says so when a record is larger than a broker takes', async () => {
    const value = Buffer.alloc(2_097_152, 'x');
    const refusal = await log
      .publish([{ topic, key: 'k', value }])
      .catch((error: unknown) => error);
    expect(isTooLarge(refusal)).toBe(true);
    await log.publish([{ topic, key: 'k', value: Buffer.alloc(1) }]);
    expect(log.isConnected()).toBe(true);
  });

  it('works on the records of one partition side by side and lets them finish in any order', async () => {
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
    await eventually('all under work at once', () => most === 20);
    for (const finish of open.reverse()) finish();
  });

  it('tries a record again whose work failed, and goes on with the rest meanwhile', async () => {
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

  it('holds a partition back until its head is due, and others meanwhile not', async () => {
    await publish(['late', 'now-1', 'now-2', 'now-3']);
    const at = new Map<string, number>();
    let dueAtMs = Number.POSITIVE_INFINITY;
    const askAgainMs = 100;
    await consume(({ key }) => Promise.resolve(void at.set(key, Date.now())), {
      postponeMs: ({ key }) => (key === 'late' ? Math.min(dueAtMs - Date.now(), askAgainMs) : 0),
    });
    await eventually('another partition', () => at.size > 0);
    expect([...at.keys()]).not.toContain('late');
    dueAtMs = Date.now() + 500;
    await eventually('the late one', () => at.has('late'));
    expect(at.get('late')).toBeGreaterThanOrEqual(dueAtMs);
  });

  it('never has more than a window and one fetch under work, and still reads everything', async () => {
    const keys = Array.from({ length: 300 }, (_, n) => `k${n}`);
    const seen = new Set<string>();
    await consume(
      async ({ key }) => {
        await new Promise((resolve) => setImmediate(resolve));
        seen.add(key);
      },
      { window: { high: 10, low: 5 } },
    );
    for (let n = 0; n < keys.length; n += 30) await publish(keys.slice(n, n + 30));
    await eventually('all of them', () => seen.size === keys.length);
  });

  it('gives each topic a window of its own', async () => {
    const other = await scratch.newTopic(`log-${counter}-fresh`);
    const flood = Array.from({ length: 50 }, (_, n) => `flood-${n}`);
    const open: (() => void)[] = [];
    const fresh: string[] = [];
    await consume(
      async (record) => {
        if (record.topic === other) fresh.push(record.key);
        else await new Promise<void>((resolve) => open.push(resolve));
      },
      { topics: [topic, other], window: { high: 10, low: 5 } },
    );
    await publish(flood);
    await eventually('the window of the flood is full', () => open.length >= 10);
    await log.publish([{ topic: other, key: 'fresh', value: Buffer.alloc(0) }]);
    await eventually('the fresh one', () => fresh.length === 1);
    expect(open).toHaveLength(10);
    await eventually('the whole flood', () => {
      for (const finish of open) finish();
      return open.length === flood.length;
    });
  });

  it('gives one key always to one partition, and partition p of two topics to one member', async () => {
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
    await log.publish(
      keys.flatMap((key) =>
        [topic, other].map((to) => ({ topic: to, key, value: Buffer.from('') })),
      ),
    );
    await eventually('every key', () => owners.size === keys.length);
    expect([...owners.values()].every((names) => names.size === 1)).toBe(true);
  });
});
