import { beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdOf, firstIdAt } from '@posthorn/domain/ids.ts';
import { decodeRetryDue } from '@posthorn/domain/records/retry-due.ts';
import type { Resend } from '@posthorn/domain/resend.ts';
import type { OutgoingRecord } from '@posthorn/platform/kafka/record-log.ts';
import type { ResentTo } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { sampleResend } from '../../../../test/support/memory/memory-resends.ts';
import { interruptAt } from '../../../../test/support/process/interrupt-at.ts';
import {
  createResendHarness,
  MINUTE_MS,
  SECOND_MS,
  type ResendHarness,
} from '../../../../test/support/resends/resend-harness.ts';

const idAt = (ms: number): string => `${firstIdAt('msg', ms)}${'0'.repeat(16)}`;
const BEGAN_MS = 5_000;
const WEBHOOK: ResentTo = {
  appId: 'app_1',
  disabled: false,
  eventTypes: [],
  cancelBeforeMs: null,
  rateLimitPerSecond: null,
};

let world: ResendHarness;
/** Ids of the messages that the endpoint got, in order. */
let requested: string[];
let published: OutgoingRecord[];
/** Whether an attempt of this message is made. */
let isMade: (messageId: string) => boolean;

beforeEach(openWorld);

function openWorld(): void {
  world = createResendHarness();
  [requested, published, isMade] = [[], [], () => true];
  const { publish } = world.records;
  world.records.publish = (records) => {
    published.push(...records);
    return publish(records);
  };
  world.dispatch = (suffix) => {
    attempt(`msg_${suffix}`);
  };
}

/** As a dispatcher does, which looks up what the record asks for. */
function attempt(messageId: string): void {
  const deliveryId = deliveryIdOf(messageId, 'wh_1');
  if (!isMade(messageId) || world.attempts.get(deliveryId) !== 0) return;
  world.attempts.set(deliveryId, 1);
  requested.push(messageId);
}

/** Stores messages, one of each millisecond, every third of which the webhook has; returns the ids of the others. */
function storeMessages(count: number): string[] {
  const ids = Array.from({ length: count }, (_, n) => idAt(n + 1));
  for (const [n, id] of ids.entries()) {
    world.messages.push({ id, eventType: 'order.paid', targets: n % 3 === 0 ? ['wh_1'] : [] });
  }
  return ids.filter((_, n) => n % 3 !== 0);
}

const begin = (changes: Partial<Resend> = {}) =>
  world.resends.insert(
    sampleResend('rsnd_1', { kind: 'replay', createdAtMs: BEGAN_MS, ...changes }),
  );
const stateOf = () => world.running.get('rsnd_1');
const done = (succeeded: number, failed = 0) => ({
  status: 'done',
  total: succeeded + failed,
  succeeded,
  failed,
});

describe('a replay', () => {
  test('sends what the webhook lacks, oldest first, page by page', async () => {
    const missing = storeMessages(1_400);
    await begin();
    await world.runToEnd(world.worker());
    expect(requested).toEqual(missing);
    expect(world.sends.map(({ length }) => length)).toEqual([333, 333, 267]);
    expect(stateOf()).toMatchObject(done(missing.length));
  });

  test('sends only what passes the filter that the webhook has then', async () => {
    const missing = storeMessages(1_400);
    for (const [n, each] of world.messages.entries()) each.payload = JSON.stringify({ n });
    world.replayedTo = { ...WEBHOOK, filter: '{"payload":{"n":{"$gte":1395}}}' };
    await begin();
    await world.runToEnd(world.worker());
    const passing = missing.filter((id) => id >= idAt(1_396));
    expect(passing.length).toBeGreaterThan(1);
    expect(requested).toEqual(passing);
    expect(stateOf()).toMatchObject(done(passing.length));
  });

  test('counts an erased message as skipped, whatever the filter is', async () => {
    storeMessages(6);
    for (const each of world.messages.slice(3)) each.isErased = true;
    world.replayedTo = { ...WEBHOOK, filter: '{"payload":{"n":1}}' };
    await begin();
    await world.runToEnd(world.worker());
    expect(requested).toEqual([]);
    expect(stateOf()).toMatchObject(done(0, 2));
  });

  test('publishes first attempts that were created when it began, and come after fresh messages', async () => {
    storeMessages(2);
    await begin();
    await world.runToEnd(world.worker());
    const [record] = published;
    expect(record).toMatchObject({ topic: 'due', key: 'wh_1' });
    expect(record?.headers).toEqual({ 'turn-at': expect.any(String) });
    expect(decodeRetryDue(record?.value ?? Buffer.alloc(0))).toMatchObject({
      messageId: idAt(2),
      attemptNumber: 1,
      trigger: 'retry',
      createdAtMs: BEGAN_MS,
      appId: 'app_1',
    });
  });

  test('sends only what the webhook receives now, of the types that the client has chosen', async () => {
    for (const [n, eventType] of ['a', 'b', 'c', null].entries()) {
      world.messages.push({ id: idAt(n + 1), eventType, targets: [] });
    }
    world.replayedTo = { ...WEBHOOK, eventTypes: ['a', 'b'] };
    await begin({ eventTypes: ['b', 'c'] });
    await world.runToEnd(world.worker());
    expect(requested).toEqual([idAt(2)]);
  });

  test('examines as many messages for a webhook with a rate limit, and sends what that allows', async () => {
    const missing = storeMessages(1_400).slice(-3);
    for (const message of world.messages) {
      if (!missing.includes(message.id)) message.targets = ['wh_1'];
    }
    let skips = 0;
    const { skipTo } = world.resends;
    world.resends.skipTo = (...args) => {
      skips += 1;
      return skipTo(...args);
    };
    await begin();
    await world.runToEnd(world.worker({ targetOf: world.limitedTo(1) }));
    expect([skips, world.sends.map(({ length }) => length)]).toEqual([2, [2, 1]]);
    expect(requested).toEqual(missing);
  });

  test('skips what has no payload any more, and counts it', async () => {
    const missing = storeMessages(6);
    const [erased] = world.messages.filter(({ id }) => id === missing[1]);
    if (erased) erased.isErased = true;
    await begin();
    await world.runToEnd(world.worker());
    expect(requested).toEqual(missing.filter((id) => id !== missing[1]));
    expect(stateOf()).toMatchObject(done(missing.length - 1, 1));
  });

  test('announces once that messages of a page wait for their time, when that is recorded', async () => {
    const missing = storeMessages(4);
    const waiting = deliveryIdOf(missing[1] ?? '', 'wh_1');
    const { unattempted } = world.replays;
    world.replays.unattempted = (ids) => unattempted(ids.filter((id) => id !== waiting));
    const recorded: boolean[] = [];
    const announceTimed = (): void => {
      recorded.push(world.attempts.has(waiting));
    };
    await begin();
    await world.runToEnd(world.worker({ announceTimed }));
    expect([requested, recorded]).toEqual([[missing[0]], [true]]);
  });

  test('announces nothing while each message is to be sent at once', async () => {
    storeMessages(4);
    const announceTimed = (): never => {
      throw new Error('announced');
    };
    await begin();
    await world.runToEnd(world.worker({ announceTimed }));
    expect(stateOf()).toMatchObject(done(2));
  });

  test('waits for the first attempts of a page before the next one, without a slot', async () => {
    const missing = storeMessages(900);
    isMade = () => false;
    await begin();
    await world.run(5 * MINUTE_MS, world.worker());
    expect([world.sends.length, stateOf()?.status]).toEqual([1, 'running']);
    expect(stateOf()?.progress?.open).toHaveLength(333);
    isMade = () => true;
    for (const id of missing) attempt(id);
    await world.run(2 * MINUTE_MS, world.worker());
    expect(world.sends).toHaveLength(2);
    expect(stateOf()).toMatchObject(done(missing.length));
  });

  test.each<[string, Partial<ResentTo> | null | 'aborted']>([
    ['a client aborts it', 'aborted'],
    ['its webhook is deleted', null],
    ['its webhook is disabled', { disabled: true }],
    ['a client cancels what is pending', { cancelBeforeMs: BEGAN_MS + 1 }],
  ])('ends with the page under way when %s', async (_when, change) => {
    storeMessages(900);
    isMade = () => false;
    await begin();
    await world.run(SECOND_MS, world.worker());
    if (change === 'aborted') await world.resends.askToAbort('comp_a', 'rsnd_1', 9);
    else world.replayedTo = change && { ...WEBHOOK, ...change };
    for (const id of world.attempts.keys()) world.attempts.set(id, 1);
    await world.run(2 * MINUTE_MS, world.worker());
    expect(stateOf()).toMatchObject({ status: 'aborted', succeeded: 333 });
    expect(world.sends).toHaveLength(1);
  });

  test.each(['before', 'after'] as const)(
    'sends each message once, wherever its process ended: %s each of its calls',
    async (moment) => {
      for (let nth = 1; ; nth += 1) {
        openWorld();
        const missing = storeMessages(4);
        await begin();
        const { wrap, wasReached } = interruptAt(nth, moment);
        const { resends, replays, records } = world;
        const stores = { resends: wrap(resends), replays: wrap(replays) };
        await world.run(10 * SECOND_MS, world.worker({ ...stores, records: wrap(records) }));
        await world.run(30 * SECOND_MS, world.worker());
        expect(requested).toEqual(missing);
        expect(stateOf()).toMatchObject(done(missing.length));
        if (!wasReached()) break;
        expect(nth).toBeLessThan(400);
      }
    },
  );
});
