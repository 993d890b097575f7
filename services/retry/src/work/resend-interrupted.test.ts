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
    const first = world.worker();
    await world.run(SECOND_MS, first);
    await first.stop();
    expect(world.claimed()).toEqual([]);
    isMade = () => true;
    await world.run(SECOND_MS, world.worker());
    expect(world.sends).toEqual([ids, ids.slice(1)]);
    expectAllDone();
  });

  test('does not wait for a Kafka that does not answer, and is continued elsewhere', async () => {
    const publish = () => new Promise<never>(() => undefined);
    const first = world.worker({ records: { publish } });
    await world.run(SECOND_MS, first);
    await first.stop();
    expect(world.claimed()).toEqual([]);
    await world.run(SECOND_MS, world.worker());
    expectAllDone();
  });

  test('is continued after a crash once its claim has ended', async () => {
    const crashed = () => new Promise<never>(() => undefined);
    const first = world.worker({
      records: { publish: crashed },
      resends: { ...world.resends, renew: crashed },
    });
    await world.run(SECOND_MS, first);
    const second = world.worker();
    await world.run(13 * SECOND_MS, second);
    expect(world.sends).toEqual([]);
    await world.run(3 * SECOND_MS, second);
    expect(world.sends).toEqual([ids]);
    expectAllDone();
  });

  test('leaves the parts of an app to the next one, with what they have counted', async () => {
    await storeFailed(OF_APP);
    isMade = (id) => id.endsWith('wh_2');
    const first = world.worker();
    await world.run(SECOND_MS, first);
    expect(await world.resends.findShown('comp_a', 'rsnd_1')).toMatchObject({ succeeded: 2 });
    await first.stop();
    expect(world.claimed()).toEqual([]);
    isMade = () => true;
    await world.run(SECOND_MS, world.worker());
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
        const { resends, marks, records } = world;
        const stores = { resends: wrap(resends), marks: wrap(marks) };
        await world.run(10 * SECOND_MS, world.worker({ ...stores, records: wrap(records) }));
        for (const id of world.sends.flat()) world.settle(id, true);
        isMade = () => true;
        await world.run(10 * SECOND_MS, world.worker({ ...stores, records: wrap(records) }));
        await world.run(30 * SECOND_MS, world.worker());
        expectAllDone();
        if (!wasReached()) break;
        expect(nth).toBeLessThan(400);
      }
    },
  );
});

describe('a resend that another process has claimed', () => {
  /** The claim of a process whose renewals did not arrive ends. */
  const endClaim = async (): Promise<void> => {
    await world.run(16 * SECOND_MS, world.worker());
  };

  test('is not counted twice when the process before hung and continues', async () => {
    let wake: () => void = () => undefined;
    const hung = new Promise<void>((resolve) => (wake = resolve));
    const endPage: typeof world.resends.endPage = async (...args) => {
      await hung;
      return world.resends.endPage(...args);
    };
    const renew = () => hung.then(() => false);
    const first = world.worker({ resends: { ...world.resends, endPage, renew } });
    await world.run(SECOND_MS, first);
    await endClaim();
    await world.run(MINUTE_MS, world.worker());
    wake();
    await first.idle();
    expectAllDone();
  });
});

test('after a tick that cannot read the store, the next one works', async () => {
  const claim = () => Promise.reject(new Error('MongoDB is away'));
  await world.run(SECOND_MS, world.worker({ resends: { ...world.resends, claim } }));
  expect(world.sends).toEqual([]);
  await world.run(SECOND_MS, world.worker());
  await eventually('it is idle', () => world.claimed().length === 0);
  expectAllDone();
});
