import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Resend } from '@posthorn/domain/resend.ts';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { interruptAt, type Moment } from '../../../../test/support/process/interrupt-at.ts';
import { sampleResend } from '../../../../test/support/memory/memory-resends.ts';
import {
  createResendHarness,
  MINUTE_MS,
  SECOND_MS,
  type ResendHarness,
} from '../../../../test/support/resends/resend-harness.ts';

const LEASE = 'resend/rsnd_1';

let world: ResendHarness;
let ids: string[];
/** Which of the published attempts have a result. */
let isMade: (deliveryId: string) => boolean;

beforeEach(() => storeFailed());

async function storeFailed(ofApp: Partial<Resend> = {}): Promise<void> {
  world = createResendHarness();
  isMade = () => true;
  world.dispatch = (id) => {
    if (isMade(id)) world.settle(id, true);
  };
  ids = [...world.fail(3, 'wh_1'), ...(ofApp.appId ? world.fail(2, 'wh_2') : [])];
  await world.resends.insert(sampleResend('rsnd_1', ofApp));
}

function expectAllDone(): void {
  const all = ids.length;
  const done = { status: 'done', total: all, succeeded: all, failed: 0 };
  expect(world.running.get('rsnd_1')).toMatchObject(done);
  expect(world.running.size).toBe(1);
  // One attempt each, however often it was published.
  const attempts = [...world.deliveries.values()].map(({ attemptCount }) => attemptCount);
  expect(attempts).toEqual(ids.map(() => 8));
}

const OF_APP = { appId: 'app_1', webhookId: null };

describe('a resend whose process stops in the middle of a page', () => {
  test('is continued at once elsewhere, with the deliveries that are not settled', async () => {
    isMade = (id) => id === ids[0];
    const first = world.gateway('a');
    await world.run(SECOND_MS, first);
    await first.stop();
    expect(world.leases.holders.size).toBe(0);
    isMade = () => true;
    await world.run(SECOND_MS, world.gateway('b'));
    expect(world.sends).toEqual([ids, ids.slice(1)]);
    expectAllDone();
  });

  test('does not wait for a Kafka that does not answer, and is continued elsewhere', async () => {
    const publish = () => new Promise<never>(() => undefined);
    const first = world.gateway('a', { records: { publish } });
    await world.run(SECOND_MS, first);
    await first.stop();
    expect(world.leases.holders.size).toBe(0);
    await world.run(SECOND_MS, world.gateway('b'));
    expectAllDone();
  });

  test('is continued elsewhere while its process hangs, although that claims it too', async () => {
    const publish = () => new Promise<never>(() => undefined);
    const hangs = world.gateway('a', { records: { publish } });
    const resend = { ...sampleResend('rsnd_1'), dueAtMs: world.timers.nowMs() };
    hangs.wake(resend);
    await world.run(14 * SECOND_MS, hangs);
    world.leases.holders.delete(LEASE);
    for (let n = 0; n < 5; n += 1) {
      await world.run(SECOND_MS, hangs);
      await world.run(SECOND_MS, world.gateway('b'));
    }
    expectAllDone();
  });

  test('is continued after a crash once the lease has ended', async () => {
    const publish = () => new Promise<never>(() => undefined);
    await world.run(SECOND_MS, world.gateway('a', { records: { publish } }));
    const second = world.gateway('b');
    await world.run(14 * SECOND_MS, second);
    expect(world.sends).toEqual([]);
    world.leases.holders.delete(LEASE);
    await world.run(16 * SECOND_MS, second);
    expect(world.sends).toEqual([ids]);
    expectAllDone();
  });

  test('leaves the parts of an app to the next one, with what they have counted', async () => {
    await storeFailed(OF_APP);
    isMade = (id) => id.endsWith('wh_2');
    const first = world.gateway('a');
    await world.run(SECOND_MS, first);
    expect(await world.resends.findShown('comp_a', 'rsnd_1')).toMatchObject({ succeeded: 2 });
    await first.stop();
    expect(world.leases.holders.size).toBe(0);
    isMade = () => true;
    await world.run(SECOND_MS, world.gateway('b'));
    expectAllDone();
  });

  test.each<[string, Moment, Partial<Resend>]>([
    ['of a webhook', 'before', {}],
    ['of a webhook', 'after', {}],
    ['of an app', 'before', OF_APP],
    ['of an app', 'after', OF_APP],
  ])(
    'is finished by the next one, wherever it ended: %s, %s each of its calls',
    async (_of, moment, ofApp) => {
      for (let nth = 1; ; nth += 1) {
        await storeFailed(ofApp);
        // Nothing gets a result, so that the resend is put back and claimed again.
        isMade = () => false;
        const { wrap, wasReached } = interruptAt(nth, moment);
        const { resends, marks, leases, records } = world;
        const stores = { resends: wrap(resends), marks: wrap(marks), leases: wrap(leases) };
        await world.run(10 * SECOND_MS, world.gateway('a', { ...stores, records: wrap(records) }));
        for (const id of world.sends.flat()) world.settle(id, true);
        isMade = () => true;
        await world.run(10 * SECOND_MS, world.gateway('a', { ...stores, records: wrap(records) }));
        leases.holders.clear();
        await world.run(30 * SECOND_MS, world.gateway('b'));
        expectAllDone();
        if (!wasReached()) break;
        expect(nth).toBeLessThan(400);
      }
    },
  );
});

describe('a resend whose lease another process has taken', () => {
  test('is left to the new holder and counted once', async () => {
    isMade = () => false;
    await world.run(SECOND_MS, world.gateway('a'));
    world.leases.holders.set(LEASE, 'b');
    await world.run(20 * SECOND_MS, world.gateway('a'));
    expect(world.leases.holders.get(LEASE)).toBe('b');
    for (const id of ids) world.settle(id, true);
    await world.run(MINUTE_MS, world.gateway('b'));
    expectAllDone();
  });

  test('is not counted twice when the old holder hung and continues', async () => {
    let wake: () => void = () => undefined;
    const hung = new Promise<void>((resolve) => (wake = resolve));
    const endPage: typeof world.resends.endPage = async (...args) => {
      await hung;
      return world.resends.endPage(...args);
    };
    const first = world.gateway('a', { resends: { ...world.resends, endPage } });
    await world.run(SECOND_MS, first);
    world.leases.holders.delete(LEASE);
    await world.run(MINUTE_MS, world.gateway('b'));
    wake();
    await first.idle();
    expectAllDone();
  });
});

test('after a tick that cannot read the store, the next one works', async () => {
  const claim = () => Promise.reject(new Error('MongoDB is away'));
  await world.run(SECOND_MS, world.gateway('a', { resends: { ...world.resends, claim } }));
  expect(world.sends).toEqual([]);
  await world.run(SECOND_MS, world.gateway('a'));
  await eventually('it is idle', () => world.leases.holders.size === 0);
  expectAllDone();
});
