import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  startKafkaProxy,
  type KafkaProxy,
} from '../../../../../test/support/process/kafka-proxy.ts';
import { createNamespace } from '../../../../../test/support/process/namespace.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';

const JOIN_GROUP = 11;

describe('a consumer that lost its session', () => {
  let proxy: KafkaProxy;
  let cut: ScratchLog;
  let whole: ScratchLog;

  beforeEach(async () => {
    proxy = await startKafkaProxy(createNamespace().KAFKA_BROKERS);
    cut = await openScratchLog({ brokers: [proxy.broker] });
    whole = await openScratchLog();
  });

  afterEach(async () => {
    await Promise.all([cut.records.close(), whole.records.close()]);
    await proxy.close();
  });

  it('handles nothing that others have until it is a member again, though its first join fails', async () => {
    const topic = await whole.newTopic('orders');
    const groupId = `${topic}-group`;
    const handled: string[] = [];
    const consumption = await cut.records.consume({
      groupId,
      topics: [topic],
      inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
      handle: ({ key }) => Promise.resolve(void handled.push(key)),
    });
    const admin = whole.kafka.admin();
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
    await whole.records.publish([{ topic, key: 'a', value: Buffer.alloc(0) }]);
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
