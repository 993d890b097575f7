import type { Admin } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { createNamespace } from '../../../../../test/support/process/namespace.ts';
import { createLogger } from '../../service/logger.ts';
import { createKafkaClient } from '../connect.ts';
import type { GroupClient } from '../consumer/group-client.ts';
import type { ConsumeOptions, Consumption, RecordLog } from '../record-log.ts';

/** Far below the ten seconds after which a group drops a member that does not answer. */
const SOON_MS = 6_000;

describe('a member that leaves its group', () => {
  let scratch: ScratchLog;
  let leaving: RecordLog;
  let staying: RecordLog;
  let admin: Admin;
  let topic: string;
  let members: GroupClient[];
  let consumptions: Consumption[];
  let counter = 0;

  beforeAll(async () => {
    scratch = await openScratchLog({ onMember: (member) => members.push(member) });
    leaving = scratch.records;
    staying = await scratch.openAnother();
    const logger = createLogger('test', 'silent');
    admin = createKafkaClient(
      'posthorn-test',
      { brokers: [createNamespace().KAFKA_BROKERS] },
      logger,
    ).admin();
    await admin.connect();
  });

  afterAll(() => Promise.all([leaving.close(), staying.close(), admin.disconnect()]));

  beforeEach(async () => {
    [members, consumptions] = [[], []];
    counter += 1;
    topic = await scratch.newTopic(`leave-${counter}`);
  });

  afterEach(() => Promise.all(consumptions.map((each) => each.stop(0))));

  function consume(
    log: RecordLog,
    handle: ConsumeOptions['handle'],
    more: Partial<ConsumeOptions> = {},
  ): Promise<Consumption> {
    return log.consume({
      groupId: `${topic}-group`,
      topics: [topic],
      handle,
      inFlightLimits: { pauseAt: 1_000, resumeAt: 500 },
      ...more,
    });
  }

  const publish = (...keys: string[]): Promise<void> =>
    leaving.publish(keys.map((key) => ({ topic, key, value: Buffer.alloc(0) })));

  /** Handles records until each is told to end. */
  function holdRecords() {
    const ends = new Map<string, () => void>();
    const handle: ConsumeOptions['handle'] = ({ key }) =>
      new Promise((resolve) => void ends.set(key, resolve));
    const endAll = (without: readonly string[] = []): void => {
      for (const [key, end] of ends) if (!without.includes(key)) end();
    };
    return { keys: () => [...ends.keys()], handle, endAll };
  }

  const keys = Array.from({ length: 30 }, (_, n) => `k${n}`);
  const memberCount = async (): Promise<number> =>
    (await admin.describeGroups([`${topic}-group`])).groups[0]?.members.length ?? 0;

  it('hands over the records in flight where it may, and ends them before its stop does', async () => {
    const seen: string[] = [];
    consumptions.push(await consume(staying, ({ key }) => Promise.resolve(void seen.push(key))));
    const held = holdRecords();
    const mayHandOver = (): boolean => true;
    const first = await consume(leaving, held.handle, { mayHandOver });
    await publish(...keys);
    await eventually('both read', () => held.keys().length + seen.length >= keys.length);
    let isStopped = false;
    const stop = first.stop(30_000).then(() => (isStopped = true));
    await eventually('the other one reads all', () => new Set(seen).size === keys.length, SOON_MS);
    expect([held.keys().length > 0, isStopped]).toEqual([true, false]);
    held.endAll();
    await stop;
  });

  it('ends records before its stop does though their partition has another owner by then', async () => {
    const held = holdRecords();
    const first = await consume(leaving, held.handle);
    await publish(...keys);
    await eventually('it reads all', () => held.keys().length === keys.length);
    const seen: string[] = [];
    consumptions.push(await consume(staying, ({ key }) => Promise.resolve(void seen.push(key))));
    await eventually('the other one reads some', () => seen.length > 0);
    // Later ones of the same partition may still come.
    await publish('last');
    await eventually('the last', () => [...seen, ...held.keys()].includes('last'));
    held.endAll(seen);
    let isStopped = false;
    const stop = first.stop(30_000).then(() => (isStopped = true));
    await eventually('it has left', async () => (await memberCount()) === 1);
    expect(isStopped).toBe(false);
    held.endAll();
    await stop;
  });

  it('leaves no partition idle when it is stopped while it joins', async () => {
    const seen: string[] = [];
    consumptions.push(await consume(staying, ({ key }) => Promise.resolve(void seen.push(key))));
    const joining = consume(leaving, () => Promise.resolve());
    await eventually('it joins', async () => {
      const [group] = (await admin.describeGroups([`${topic}-group`])).groups;
      return group?.state !== 'Stable' || group.members.length === 2;
    });
    await members[1]?.leave();
    consumptions.push(await joining);
    await publish(...keys);
    await eventually('all of them', () => new Set(seen).size === keys.length, SOON_MS);
  });
});
