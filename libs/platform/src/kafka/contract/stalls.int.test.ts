import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  startKafkaProxy,
  type KafkaProxy,
} from '../../../../../test/support/process/kafka-proxy.ts';
import { createNamespace } from '../../../../../test/support/process/namespace.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import type { GroupClient } from '../consumer/group-client.ts';
import type { ConsumeOptions, LogRecord } from '../record-log.ts';

let scratch: ScratchLog;
let topic: string;
let consumers: GroupClient[];
let counter = 0;

beforeAll(async () => {
  scratch = await openScratchLog({ onMember: (member) => consumers.push(member) });
});

beforeEach(async () => {
  consumers = [];
  counter += 1;
  topic = await scratch.newTopic(`stall-${counter}`);
});

afterAll(() => scratch.close());

const publish = (...keys: string[]): Promise<void> => scratch.publish(topic, keys);
const never = (): Promise<void> => new Promise(() => undefined);

describe('a consumer that stalls', () => {
  /** Long beside what a new consumer needs for its first commit on a busy machine: it must not stall too. */
  const STALL_MS = 4_000;
  const consume = (handle: ConsumeOptions['handle'], more: Partial<ConsumeOptions> = {}) =>
    scratch.consume(topic, handle, { stallMs: STALL_MS, ...more });

  afterEach(() => scratch.stopMembers());

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
  });

  it('is replaced when the client stops fetching, and reports its lag meanwhile', async () => {
    const seen: string[] = [];
    await consume(({ key }) => Promise.resolve(void seen.push(key)));
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
  });

  it('is not alive when the new consumer stalls too, and stops in time', async () => {
    await publish('stuck');
    const consumption = await consume(never);
    await eventually('a new consumer', () => consumers.length === 2);
    expect(consumption.isAlive()).toBe(true);
    await eventually('no life left', () => !consumption.isAlive());
    expect(consumers).toHaveLength(2);
    await consumption.stop(0);
  });

  it('is not replaced while a store is away, nor while its next record is not due', async () => {
    await publish('stuck', 'late');
    let checks = 0;
    const areStoresUp = (): boolean => {
      checks += 1;
      return false;
    };
    const away = await consume(never, { areStoresUp });
    const delayed = await consume(() => Promise.resolve(), {
      groupId: `${topic}-late`,
      delayMs: () => 60_000,
    });
    // A check comes at every sixth of the stall time: three times that time is ample.
    await eventually('many checks', () => checks >= 18);
    expect([consumers.length, away.isAlive(), delayed.isAlive()]).toEqual([2, true, true]);
  });

  it('can be stopped while it is replaced', async () => {
    await publish('stuck');
    const consumption = await consume(never);
    await eventually('a new consumer', () => consumers.length === 2);
    await consumption.stop(0);
    expect(consumption.isRunning()).toBe(false);
    const seen: string[] = [];
    await consume(({ key }) => Promise.resolve(void seen.push(key)));
    await eventually('its record', () => seen.length === 1);
  });
});

describe('a consumer that lost its session', () => {
  const JOIN_GROUP = 11;

  let proxy: KafkaProxy;
  let cut: ScratchLog;

  beforeEach(async () => {
    proxy = await startKafkaProxy(createNamespace().KAFKA_BROKERS);
    cut = await openScratchLog({ brokers: [proxy.broker] });
  });

  afterEach(async () => {
    await cut.stopMembers();
    await cut.close();
    await proxy.close();
  });

  it('handles nothing that others have until it is a member again, though its first join fails', async () => {
    const groupId = `${topic}-group`;
    const handled: string[] = [];
    const consumption = await cut.consume(topic, ({ key }) =>
      Promise.resolve(void handled.push(key)),
    );
    const admin = scratch.kafka.admin();
    await admin.connect();
    const memberIds = async () =>
      (await admin.describeGroups([groupId])).groups.flatMap(({ members }) =>
        members.map(({ memberId }) => memberId),
      );
    const [first] = await memberIds();
    expect(first).toBeTruthy();

    proxy.block();
    await eventually('its session ends', async () => (await memberIds()).length === 0, 60_000);
    proxy.refuseNext(JOIN_GROUP);
    proxy.unblock();
    await publish('a');
    await eventually('the record', () => handled.length > 0, 60_000);
    // It is read once: by a member, which commits it.
    expect(await memberIds()).toHaveLength(1);
    expect(await memberIds()).not.toContain(first);
    await consumption.stop(5_000);
    const committed = await admin.fetchOffsets({ groupId, topics: [topic] });
    const offsets = committed.flatMap(({ partitions }) => partitions.map(({ offset }) => offset));
    expect(offsets).toContain('1');
    expect(handled).toEqual(['a']);
    await admin.disconnect();
  });
});
