import { describe, expect, test } from '@jest/globals';
import type { KnownPublisher } from '@posthorn/platform/mongo/messages/publishers.ts';
import { backlogOf, nextPageLimit, observe, stepFor, type SweepStep } from './when-taken-over.ts';

const ALIVE: KnownPublisher = {
  id: 'gw_01h00000000000000000000000',
  watermark: 'msg_1',
  sweptTo: '',
  isTakenOver: false,
  heartbeatAtMs: 1,
  silentMs: 500,
  stuckMs: null,
};

/** Returns the steps for a publisher that is listed every 2 s, with the changes of each round. */
function stepsOf(rounds: Partial<KnownPublisher>[]): SweepStep[] {
  let seen: ReturnType<typeof observe> | undefined;
  return rounds.map((changes, round) => {
    const publisher = { ...ALIVE, ...changes };
    seen = observe(publisher, seen, round * 2_000);
    const step = stepFor(publisher, seen, round * 2_000);
    if (step === 'help') {
      seen = { ...seen, helped: { watermark: publisher.watermark, atMs: round * 2_000 } };
    }
    return step;
  });
}

const times = <T>(count: number, value: T): T[] => Array<T>(count).fill(value);

describe('a page of a backlog', () => {
  const pageOf = (messages: number, chars: number) =>
    Array.from({ length: messages }, () => ({ payload: 'x'.repeat(chars) }));

  test('has as many messages as 8 MiB hold of those before', () => {
    expect(nextPageLimit(pageOf(10, 100_000))).toBe(83);
  });

  test('has a thousand small ones at most, and one at least', () => {
    expect([nextPageLimit(pageOf(200, 2)), nextPageLimit(pageOf(1, 9_000_000))]).toEqual([
      1_000, 1,
    ]);
  });
});

describe('the backlog of a publisher', () => {
  test('is left to a gateway that is alive', () => {
    expect(stepsOf(times(20, {}))).toEqual(times(20, 'leave'));
  });

  test('is taken over when no heartbeat came for 10 s', () => {
    expect(stepsOf(times(3, { silentMs: 10_001 }))).toEqual(['leave', 'leave', 'take_over_silent']);
  });

  test('is not taken over after an outage of the store, when the gateway sends its next heartbeat', () => {
    const back = { heartbeatAtMs: 2, silentMs: 800 };
    expect(stepsOf([{ silentMs: 60_000 }, { silentMs: 62_000 }, back])).toEqual(times(3, 'leave'));
  });

  test('is swept only when the gateway that it was taken from cannot publish any more', () => {
    const taken = { isTakenOver: true };
    expect(stepsOf([taken, { ...taken, silentMs: 10_001 }])).toEqual(['leave', 'sweep']);
  });

  test('is left to a gateway that is behind for less than a minute', () => {
    expect(stepsOf(times(20, { stuckMs: 60_000 }))).toEqual(times(20, 'leave'));
  });

  test('is taken over from a gateway that makes no progress although Kafka takes its oldest message', () => {
    const steps = stepsOf(times(11, { stuckMs: 61_000 }));
    expect(steps).toEqual(['help', ...times(9, 'leave'), 'take_over_stuck']);
  });

  test('is tried again for a gateway that was stuck before, although its watermark stands', () => {
    const stuck = times(5, { stuckMs: 61_000 });
    const steps = stepsOf([...stuck, ...times(20, { stuckMs: 1_000 }), ...stuck]);
    expect(steps.filter((step) => step !== 'leave')).toEqual(['help', 'help']);
  });

  test('is left to a gateway that makes progress, however large it is', () => {
    const rounds = Array.from({ length: 12 }, (_, n) => ({
      stuckMs: 300_000,
      watermark: `msg_${Math.floor(n / 6)}`,
    }));
    const steps = stepsOf(rounds);
    expect(steps.filter((step) => step !== 'leave')).toEqual(['help', 'help']);
  });
});

describe('a scan for a publisher that was taken over', () => {
  const taken = { ...ALIVE, isTakenOver: true, silentMs: 30_000 };

  test.each([
    [null, 'sweep'],
    [91_000, 'leave'],
    [90_000, 'sweep'],
  ])('is repeated 10 s after it found nothing (at %s)', (emptyAtMs, step) => {
    const seen = { ...observe(taken, undefined, 0), emptyAtMs };
    expect(stepFor(taken, seen, 100_000)).toBe(step);
  });
});

describe('a sweep', () => {
  test.each([
    [{ watermark: 'msg_5', sweptTo: '' }, 'msg_5'],
    [{ watermark: 'msg_5', sweptTo: 'msg_7' }, 'msg_7'],
    [{ watermark: 'msg_5', sweptTo: 'msg_3' }, 'msg_5'],
    [{ watermark: '', sweptTo: '' }, 'msg_01h0000000'],
  ])('of %j begins after %s', (progress, first) => {
    const seen = { readTo: null, isScannedAgain: false };
    expect(backlogOf({ ...ALIVE, ...progress }, seen).afterId).toBe(first);
  });

  test('begins at the watermark once more when no insert can be running any longer', () => {
    const late = { ...ALIVE, watermark: 'msg_5', sweptTo: 'msg_7', silentMs: 30_001 };
    const firstIds = [false, true].map(
      (isScannedAgain) => backlogOf(late, { readTo: null, isScannedAgain }).afterId,
    );
    expect(firstIds).toEqual(['msg_5', 'msg_7']);
  });

  test('continues where its last scan ended, unless its gateway has handed over meanwhile', () => {
    const looking = { ...observe(ALIVE, undefined, 0), readTo: 'msg_9' };
    expect(observe(ALIVE, looking, 2_000).readTo).toBe('msg_9');
    expect(observe({ ...ALIVE, heartbeatAtMs: 2 }, looking, 2_000).readTo).toBeNull();
  });
});
