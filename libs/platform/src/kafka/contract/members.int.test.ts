import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Admin } from 'kafkajs';
import { openScratchLog, type ScratchLog } from '../../../../../test/support/stores/scratch-log.ts';
import { eventually } from '../../../../../test/support/time/eventually.ts';
import type { GroupClient } from '../consumer/group-client.ts';
import type { Commit } from '../offsets/owned-partitions.ts';
import type { ConsumeOptions, Consumption, RecordLog } from '../record-log.ts';

/** Below the ten seconds without a heartbeat after which a group drops a member. They come twice a second. */
const SOON_MS = 9_000;

let scratch: ScratchLog;
let other: RecordLog;
let admin: Admin;
let topic: string;
let clients: GroupClient[];
/** topic/partition → the offsets committed by any member, in order. */
let commits: Map<string, number[]>;
let counter = 0;

beforeAll(async () => {
  scratch = await openScratchLog({ onMember: (client) => clients.push(client), onCommit });
  other = await scratch.openAnother();
  admin = scratch.kafka.admin();
  await admin.connect();
});

beforeEach(async () => {
  clients = [];
  commits = new Map();
  counter += 1;
  topic = await scratch.newTopic(`members-${counter}`);
});

afterEach(() => scratch.stopMembers());

afterAll(() => Promise.all([scratch.close(), admin.disconnect()]));

function onCommit(made: readonly Commit[]): void {
  for (const { topic: of, partition, offset } of made) {
    const key = `${of}/${partition}`;
    commits.set(key, [...(commits.get(key) ?? []), offset]);
  }
}

const keysOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `k${n}`);
const publish = (...keys: string[]): Promise<void> => scratch.publish(topic, keys);
const groupOf = async () => (await admin.describeGroups([`${topic}-group`])).groups[0];

describe('members that come and go', () => {
  it('lose nothing, never commit backwards and never stall', async () => {
    const [rounds, perRound] = [6, 300];
    const done = new Set<string>();
    let assignments = 0;
    let rebalances = 0;
    let begunMeanwhile = 0;
    const join = (log: RecordLog): Promise<Consumption> => {
      let isChanging = false;
      const handle: ConsumeOptions['handle'] = async ({ value }) => {
        if (isChanging) begunMeanwhile += 1;
        await new Promise((resolve) => setImmediate(resolve));
        done.add(value.toString());
      };
      return scratch.consume(topic, handle, {
        log,
        stallMs: 10_000,
        inFlightLimits: { pauseAt: 100, resumeAt: 50 },
        onRebalancing() {
          rebalances += 1;
          isChanging = true;
        },
        onAssigned() {
          assignments += 1;
          isChanging = false;
        },
      });
    };
    const publishRound = (round: number): Promise<void> =>
      scratch.records.publish(
        keysOf(perRound).map((key, n) => ({ topic, key, value: Buffer.from(`${round}-${n}`) })),
      );
    const first = await join(scratch.records);
    for (let round = 0; round < rounds; round += 1) {
      const before = assignments;
      const published = publishRound(round);
      const second = await join(other);
      // Both the member that joins and the one that gives partitions up.
      await eventually('both know their share', () => assignments >= before + 2);
      await Promise.all([published, publishRound(rounds + round)]);
      await second.stop(5_000);
    }
    await eventually('all of them', () => done.size === 2 * rounds * perRound);
    expect([rebalances >= rounds, begunMeanwhile]).toEqual([true, 0]);
    await first.stop(5_000);
    expect(first.isAlive()).toBe(true);
    expect(commits.size).toBe(3);
    for (const offsets of commits.values()) {
      expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    }
    const last = [...commits.values()].map((offsets) => offsets.at(-1) ?? 0);
    expect(last.reduce((a, b) => a + b, 0)).toBe(2 * rounds * perRound);
  });

  it('are handed nothing over again that was finished when one of them joined', async () => {
    const handled: string[] = [];
    const handle: ConsumeOptions['handle'] = ({ key }) => Promise.resolve(void handled.push(key));
    const publishing: Promise<void>[] = [];
    await scratch.consume(topic, handle);
    const timer = setInterval(() => publishing.push(publish(String(publishing.length))), 10);
    await eventually('records are read', () => handled.length >= 20);
    await scratch.consume(topic, handle, { log: other });
    clearInterval(timer);
    await Promise.all(publishing);
    await eventually('all are read', () => new Set(handled).size === publishing.length);
    expect(handled).toHaveLength(publishing.length);
  });
});

describe('a member that leaves its group', () => {
  /** Handles records until a test ends each of them. */
  function handleUntilEnded() {
    const ends = new Map<string, () => void>();
    const handle: ConsumeOptions['handle'] = ({ key }) =>
      new Promise((resolve) => void ends.set(key, resolve));
    const endAll = (without: readonly string[] = []): void => {
      for (const [key, end] of ends) if (!without.includes(key)) end();
    };
    return { keys: () => [...ends.keys()], handle, endAll };
  }

  let seen: string[];
  const staysAndReads = (): Promise<Consumption> =>
    scratch.consume(topic, ({ key }) => Promise.resolve(void seen.push(key)), { log: other });

  beforeEach(() => {
    seen = [];
  });

  it('hands over the records in flight where it may, and ends them before its stop does', async () => {
    await staysAndReads();
    const open = handleUntilEnded();
    const first = await scratch.consume(topic, open.handle, { mayHandOver: () => true });
    await publish(...keysOf(30));
    await eventually('both read', () => open.keys().length + seen.length >= 30);
    let isStopped = false;
    const stop = first.stop(30_000).then(() => (isStopped = true));
    await eventually('the other one reads all', () => new Set(seen).size === 30, SOON_MS);
    expect([open.keys().length > 0, isStopped]).toEqual([true, false]);
    open.endAll();
    await stop;
  });

  it('ends records before its stop does though their partition has another owner by then', async () => {
    const open = handleUntilEnded();
    const first = await scratch.consume(topic, open.handle);
    await publish(...keysOf(30));
    await eventually('it reads all', () => open.keys().length === 30);
    await staysAndReads();
    await eventually('the other one reads some', () => seen.length > 0);
    // Later ones of the same partition may still come.
    await publish('last');
    await eventually('the last', () => [...seen, ...open.keys()].includes('last'));
    open.endAll(seen);
    let isStopped = false;
    const stop = first.stop(30_000).then(() => (isStopped = true));
    await eventually('it has left', async () => (await groupOf())?.members.length === 1);
    expect(isStopped).toBe(false);
    open.endAll();
    await stop;
  });

  it('leaves no partition idle when it is stopped while it joins', async () => {
    await staysAndReads();
    const joining = scratch.consume(topic, () => Promise.resolve());
    await eventually('it joins', async () => {
      const group = await groupOf();
      return group?.state !== 'Stable' || group.members.length === 2;
    });
    await clients[1]?.leave();
    await joining;
    await publish(...keysOf(30));
    await eventually('all of them', () => new Set(seen).size === 30, SOON_MS);
  });
});

describe('partitions', () => {
  const PARTITIONS = 12;
  const KINDS = ['together', 'following'] as const;
  const byNumber = (a: number, b: number): number => a - b;

  interface Process {
    /** Its partitions in the group that shares them together, and in the one that follows. */
    own: Record<(typeof KINDS)[number], readonly number[]>;
    members: readonly Consumption[];
  }

  it('stay but for a quarter when one of four processes leaves under load and another joins, the same in both groups', async () => {
    const topics = {
      together: await scratch.newTopic('fresh', PARTITIONS),
      following: await scratch.newTopic('slow', PARTITIONS),
    };
    const handled = new Set<string>();
    const processes: Process[] = [];
    const start = async (): Promise<Process> => {
      const log = await scratch.openAnother();
      const process: Process = { own: { together: [], following: [] }, members: [] };
      processes.push(process);
      process.members = await Promise.all(
        KINDS.map((kind) =>
          scratch.consume(
            topics[kind],
            ({ topic: of, key }) => Promise.resolve(void handled.add(`${of} ${key}`)),
            {
              log,
              sharing: { kind },
              onAssigned: (assignment) =>
                (process.own[kind] = [...(assignment[topics[kind]] ?? [])].sort(byNumber)),
            },
          ),
        ),
      );
      return process;
    };
    const areSharedOut = (): boolean =>
      KINDS.every((kind) => {
        const all = processes.flatMap(({ own }) => own[kind]).sort(byNumber);
        const sizes = processes.map(({ own }) => own[kind].length);
        const isEven = Math.max(...sizes) - Math.min(...sizes) <= 1;
        return isEven && all.join() === [...Array(PARTITIONS).keys()].join();
      });
    const expectBothAlike = (): void => {
      for (const { own } of processes) expect(own.following).toEqual(own.together);
    };
    const owners = (): Map<number, Process> =>
      new Map(
        processes.flatMap((each) =>
          each.own.together.map((partition) => [partition, each] as const),
        ),
      );
    const movedSince = (before: ReadonlyMap<number, Process>): number =>
      [...owners()].filter(([partition, owner]) => before.get(partition) !== owner).length;
    const AT_MOST = PARTITIONS / 4 + 1;

    for (let n = 0; n < 4; n += 1) await start();
    await eventually('four share them', areSharedOut, 30_000);
    expectBothAlike();
    let published = 0;
    const publishing: Promise<void>[] = [];
    const load = setInterval(() => {
      const key = `k${(published += 1)}`;
      publishing.push(...KINDS.map((kind) => scratch.publish(topics[kind], [key])));
    }, 10);
    const ofFour = owners();
    const [leaving] = processes.splice(1, 1);
    await Promise.all(leaving?.members.map((each) => each.stop(5_000)) ?? []);
    await eventually('three share them', areSharedOut, 30_000);
    expectBothAlike();
    expect(movedSince(ofFour)).toBeLessThanOrEqual(AT_MOST);

    const ofThree = owners();
    const restarted = await start();
    await eventually('four share them again', areSharedOut, 30_000);
    expectBothAlike();
    expect(movedSince(ofThree)).toBeLessThanOrEqual(AT_MOST);
    expect(restarted.own.together).toEqual(leaving?.own.together);

    clearInterval(load);
    await Promise.all(publishing);
    await eventually('all of both topics', () => handled.size === 2 * published);
  });

  it('are shared evenly where topics need not stay together', async () => {
    const topics = [topic, await scratch.newTopic('second'), await scratch.newTopic('third')];
    const owners = new Map<string, RecordLog>();
    const logs = [scratch.records, other];
    const join = (log: RecordLog): Promise<Consumption> =>
      scratch.consume(
        topic,
        ({ topic: of, partition }) => Promise.resolve(void owners.set(`${of}/${partition}`, log)),
        { log, topics, sharing: { kind: 'evenly', after: 0 } },
      );
    await Promise.all(logs.map(join));
    const counts = (): number[] =>
      logs.map((log) => [...owners.values()].filter((owner) => owner === log).length);
    // 9 partitions. Together, one member would have two of each topic.
    await eventually('4 and 5 partitions', async () => {
      await Promise.all(topics.map((each) => scratch.publish(each, keysOf(60))));
      return counts().sort(byNumber).join() === '4,5';
    });
  });

  it('of a topic that only a newer member reads are its own, although the leader does not know it', async () => {
    const added = await scratch.newTopic('added');
    const partitions = new Set<number>();
    const handle: ConsumeOptions['handle'] = (record) => {
      if (record.topic === added) partitions.add(record.partition);
      return Promise.resolve();
    };
    // The first member of a group leads it for as long as it stays.
    const leader = await scratch.consume(topic, handle);
    const newer = await scratch.consume(topic, handle, { log: other, topics: [topic, added] });
    await scratch.publish(added, keysOf(60));
    await eventually('records of all partitions', () => partitions.size === 3);
    expect([leader.isRunning(), newer.isRunning()]).toEqual([true, true]);
  });
});
