import { beforeEach, describe, expect, test } from '@jest/globals';
import { FollowersInMemory } from './followers-in-memory.ts';

let nowMs: number;
let hasMemory: boolean;
let runs: (() => void)[];
/** What has happened to followers and sequences. */
let done: string[];
let followers: FollowersInMemory;

beforeEach(() => {
  nowMs = 0;
  hasMemory = true;
  runs = [];
  done = [];
  followers = new FollowersInMemory({
    hasMemory: () => hasMemory,
    later: (_ms, run) => runs.push(run),
    monotonicMs: () => nowMs,
  });
});

function follower(name: string, isOurs = () => true) {
  return {
    state: 'following' as const,
    followsSinceMs: nowMs,
    dropPayload: () => void done.push(`payload of ${name}`),
    isOurs,
  };
}

const sequence = (name: string) => ({ workOn: () => void done.push(`work on ${name}`) });

/** Runs the tick that is due, and returns what it did. */
function tickAt(atMs: number): string[] {
  nowMs = atMs;
  done = [];
  for (const run of runs.splice(0)) run();
  return done;
}

describe('a tick', () => {
  test('frees the payload of one that waits for a second, and makes its sequence store it after five', () => {
    followers.add(follower('a'), sequence('s'));
    expect(tickAt(999)).toEqual([]);
    expect(tickAt(1_000)).toEqual(['payload of a']);
    expect(tickAt(4_999)).not.toContain('work on s');
    expect(tickAt(5_000)).toContain('work on s');
  });

  test('works once on a sequence with several that wait for too long', () => {
    const first = sequence('s');
    for (const name of ['a', 'b']) followers.add(follower(name), first);
    followers.add(follower('c'), sequence('t'));
    expect(tickAt(5_000).filter((each) => each.startsWith('work'))).toEqual([
      'work on s',
      'work on t',
    ]);
  });

  test('works on the sequence of one whose partition has gone', () => {
    followers.add(
      follower('a', () => false),
      sequence('s'),
    );
    expect(tickAt(1)).toEqual(['work on s']);
  });

  test('follows while any of them waits, and begins again with the next one', () => {
    const first = follower('a');
    followers.add(first, sequence('s'));
    followers.add(follower('b'), sequence('s'));
    expect(runs.length).toBe(1);
    tickAt(1);
    expect(runs.length).toBe(1);
    followers.delete(first);
    followers.add(first, sequence('s'));
    expect(runs.length).toBe(1);
  });

  test('is the last one when none waits any more', () => {
    const only = follower('a');
    followers.add(only, sequence('s'));
    followers.delete(only);
    expect([tickAt(5_000), runs]).toEqual([[], []]);
  });
});

describe('the room for followers', () => {
  const arrived = { ...follower('a'), state: 'arrived' as const, followsSinceMs: Infinity };
  const hasRoom = (waitingOfKey = 1): boolean => followers.hasRoom(arrived, waitingOfKey);

  test('is for 16 of a key', () => {
    expect([hasRoom(16), hasRoom(17)]).toEqual([true, false]);
  });

  test('is for 12,500 of all keys', () => {
    for (let n = 0; n < 12_499; n += 1) followers.add(follower('a'), sequence('s'));
    expect(hasRoom()).toBe(true);
    followers.add(follower('a'), sequence('s'));
    expect(hasRoom()).toBe(false);
  });

  test('is none while the records in memory are too large', () => {
    hasMemory = false;
    expect(hasRoom()).toBe(false);
  });

  test('is kept by one that waits, for five seconds', () => {
    hasMemory = false;
    const waiting = follower('a');
    nowMs = 4_999;
    expect(followers.hasRoom(waiting, 17)).toBe(true);
    nowMs = 5_000;
    expect(followers.hasRoom(waiting, 17)).toBe(false);
  });
});
