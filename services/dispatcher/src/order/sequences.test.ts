import { beforeEach, describe, expect, test } from '@jest/globals';
import { sequenceIdOf } from '@posthorn/domain/delivery/sequence.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import { decodeMessageCreated, encodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { StoppedError } from '@posthorn/platform/async/keep-trying.ts';
import { setImmediate } from 'node:timers/promises';
import { sampleRecord } from '../../../../test/support/samples/sample-record.ts';
import type { Place } from './sequence-in-memory.ts';
import { Sequences } from './sequences.ts';
import type { Stored } from './stored-sequences.ts';

/** The rules of a sequence are those of the domain; the simulation has the crashes and rebalances (test/simulation). */

const KEY = { companyId: 'comp_a', webhookId: 'wh_1', orderingKey: 'order-1' };
const NOW_MS = 1_000_000;
const CREATED = 'created';

let sequences: Sequences;
let hasMemory: boolean;
let read: () => Promise<Stored | null>;
/** The messages whose deliveries were stored behind others, and their positions. */
let followers: string[];
let positions: (number | undefined)[];
let publish: () => Promise<void>;

beforeEach(() => {
  read = () => Promise.resolve(null);
  [followers, positions] = [[], []];
  hasMemory = true;
  const nothing = (): Promise<void> => Promise.resolve();
  publish = nothing;
  sequences = new Sequences({
    store: {
      read: () => read(),
      setHead: nothing,
      addFollowers(added) {
        followers.push(...added.map(({ settled }) => settled.messageId));
        positions.push(...added.map(({ settled }) => settled.position));
        return Promise.resolve();
      },
      publish: () => publish(),
      remove: () => Promise.resolve(true),
      makeDue: nothing,
    },
    messageCreatedTopic: CREATED,
    orderingOf: () => Promise.resolve('block'),
    hasMemory: () => hasMemory,
    later: () => undefined,
    metrics: { onStep: () => undefined, onFollower: () => undefined },
    nowMs: () => NOW_MS,
    monotonicMs: () => NOW_MS,
  });
});

const OURS = (): boolean => true;

function enter(offset: number, isOurs = OURS, topic = CREATED, isInherited = false): Place {
  const ref = { ...KEY, messageId: `msg_${offset}`, appId: null, createdAtMs: NOW_MS };
  const value = encodeMessageCreated(ref, null);
  const record = sampleRecord({}, { topic, offset, value, isInherited });
  const due = decodeMessageCreated(value);
  // A record that was published for a stored delivery has its position.
  const stated = topic === CREATED ? due : { ...due, position: offset };
  const place = sequences.enter({ record, due: stated, isOurs });
  if (!place) throw new Error('it has a key');
  return place;
}

const turn = (place: Place): Promise<string> => place.turn(() => undefined);

/** As another owner has stored it, with a head that has its retries, at this position. */
function storedByAnother(position = 4): Stored {
  const head = { deliveryId: 'dlv_4', messageId: 'msg_4', position };
  const times = { dueAtMs: NOW_MS, lookAfterMs: 1, sinceMs: NOW_MS, updatedAtMs: NOW_MS };
  const id = sequenceIdOf(KEY.webhookId, KEY.orderingKey);
  const sequence = { ...KEY, ...times, id, head, fromId: 'dlv_4', changes: 1, isBlocked: false };
  return { sequence, blocker: head, plan: [], isWhole: true, lastPosition: position };
}

describe('a key whose partition goes to another owner', () => {
  test('is read again when the partition has come back', async () => {
    let isFirst = true;
    expect(await turn(enter(1, () => isFirst))).toBe('begin');
    isFirst = false;
    read = () => Promise.resolve(storedByAnother());
    expect(await turn(enter(9, () => true))).toBe('done');
    expect(followers).toEqual(['msg_9']);
  });

  test('leaves the place of an attempt under way to its record that is read again', async () => {
    let isFirst = true;
    expect(await turn(enter(1, () => isFirst))).toBe('begin');
    isFirst = false;
    hasMemory = false;
    expect(await turn(enter(1))).toBe('begin');
  });

  test('leaves what it has not begun to that owner, also when the partition goes while it is read', async () => {
    let isOurs = true;
    const reading = Promise.withResolvers<null>();
    read = () => reading.promise;
    const waiting = turn(enter(1, () => isOurs));
    isOurs = false;
    reading.resolve(null);
    await expect(waiting).rejects.toThrow(StoppedError);
    read = () => Promise.resolve(storedByAnother());
    expect(await turn(enter(9, () => true))).toBe('done');
    expect(followers).toEqual(['msg_9']);
  });
});

/** The head is in work here, and the delivery of the message with offset 5 waits behind it. */
function storedBehind(): Stored {
  const { sequence } = storedByAnother();
  const ref = { ...KEY, messageId: 'msg_5', appId: null, createdAtMs: NOW_MS, attemptCount: 0 };
  const id = deliveryIdOf(ref.messageId, KEY.webhookId);
  const times = { waitingSinceMs: NOW_MS, dueAtMs: NOW_MS };
  const follower = { ...ref, ...times, id, deliveryId: id, position: 5, waiting: 'order' } as const;
  return { sequence, blocker: null, plan: [follower], isWhole: true, lastPosition: 5 };
}

describe('the record of a head', () => {
  test('is done when what is stored behind it is published', async () => {
    const events: string[] = [];
    publish = async () => {
      await setImmediate();
      events.push('published');
    };
    read = () => Promise.resolve(storedBehind());
    const head = enter(4, OURS, 'retry-due');
    expect(await turn(head)).toBe('begin');
    head.succeeded();
    await head.end();
    expect(events).toEqual(['published']);
  });
});

test('a record is behind everything that is stored, whatever its offset is and whoever has read it before', async () => {
  read = () => Promise.resolve(storedByAnother(1_000));
  const places = [enter(9), enter(10, OURS, CREATED, true)];
  expect(await Promise.all(places.map(turn))).toEqual(['done', 'done']);
  expect(positions).toEqual([1_001, 1_002]);
});

describe('a second record of an attempt that is under way', () => {
  let first: Place;

  beforeEach(async () => {
    first = enter(1, () => true);
    await turn(first);
  });

  test('is a copy of the first one', async () => {
    expect(await turn(enter(1, () => true))).toBe('done');
  });

  test('is what comes next of a delivery that has left memory', async () => {
    await first.leave();
    expect(await turn(enter(1, () => true, 'slow-lane'))).toBe('begin');
  });
});
