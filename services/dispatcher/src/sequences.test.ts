import { beforeEach, describe, expect, it } from '@jest/globals';
import type { DueAttempt } from '@posthorn/domain/records/due-attempt.ts';
import { sampleDue, sampleRecord } from '../../../test/support/samples/sample-record.ts';
import { type Place, Sequences } from './sequences.ts';

const MESSAGE_CREATED = 'created';
const SLOW_LANE = 'slow-lane';

/** Nothing is stored of the key. */
function openSequences(): Sequences {
  return new Sequences({
    store: {
      read: () => Promise.resolve(null),
      setHead: () => Promise.resolve(),
      addFollowers: () => Promise.resolve(),
      publish: () => Promise.resolve(),
      remove: () => Promise.resolve(true),
      makeDue: () => Promise.resolve(),
    },
    messageCreatedTopic: MESSAGE_CREATED,
    orderingOf: () => Promise.resolve('block'),
    hasMemory: () => true,
    later: () => undefined,
    metrics: { onFollower: () => undefined, onStep: () => undefined },
    nowMs: () => 0,
    monotonicMs: () => 0,
  });
}

describe('a second record of an attempt that is under way', () => {
  let sequences: Sequences;
  let due: DueAttempt;
  let first: Place;

  function enter(topic: string): Place {
    const record = sampleRecord({}, { topic });
    const place = sequences.enter({ record, due: { ...due }, isOurs: () => true });
    if (!place) throw new Error('a record with a key has a place');
    return place;
  }

  const turnOf = ({ turn }: Place): Promise<string> => turn(() => undefined);

  beforeEach(async () => {
    sequences = openSequences();
    due = sampleDue({ orderingKey: 'key', position: 0 });
    first = enter(MESSAGE_CREATED);
    await turnOf(first);
  });

  it('is a copy of the first one', async () => {
    expect(await turnOf(enter(MESSAGE_CREATED))).toBe('done');
  });

  it('is what comes next of a delivery that has left memory', async () => {
    await first.leave();
    expect(await turnOf(enter(SLOW_LANE))).toBe('begin');
  });
});
