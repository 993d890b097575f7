import { describe, expect, it, test } from '@jest/globals';
import {
  ATTEMPT,
  type Case,
  decideCase,
  ENDPOINT,
} from '../../../../test/support/isolation/gate-cases.ts';
import {
  type AttemptView,
  type Decision,
  type EndpointView,
  expectedWaitMs,
  fastQueuesInOrder,
  maxWaitMsAt,
  type Reason,
  reservationOf,
} from './gate.ts';

const NOW: Decision = { kind: 'now' };
const SLOW_LANE: Decision = { kind: 'slow_lane', because: 'slow' };
const full = { running: { first: 10, retry: 4, slow: 2 } };
const open = { kind: 'open', deferForMs: 30_000 } as const;
const probing = { kind: 'probing', sinceMs: 100, deferForMs: 30_000 } as const;
const wait = (
  because: 'hold' | 'pace' | 'host' | 'circuit' | 'concurrency' | 'memory' | 'busy',
  wakeInMs = Infinity,
): Decision => ({
  kind: 'wait',
  because,
  wakeInMs,
});
const defer = (because: Reason, inMs: number): Decision => ({
  kind: 'defer',
  because,
  inMs,
});

describe('an attempt', () => {
  it.each<[why: string, given: Case, decision: Decision]>([
    ['is made when nothing stands against it', {}, NOW],

    [
      'is deferred when its reservation is far',
      { attempt: { reservedInMs: 10_001 }, endpoint: { isPaced: true } },
      defer('turn', 10_001),
    ],
    [
      'is deferred until its reservation while its endpoint is paused',
      { attempt: { reservedInMs: 10_001 }, endpoint: { pauseInMs: 1_000 } },
      defer('turn', 10_001),
    ],
    [
      'is made before its reservation when nothing limits its endpoint any more',
      { attempt: { reservedInMs: 3_600_000 } },
      NOW,
    ],
    ['is made when its reservation is near', { attempt: { reservedInMs: 10_000 } }, NOW],
    [
      'is deferred when its reservation is further than it may wait with little memory',
      {
        attempt: { reservedInMs: 8_001 },
        endpoint: { isPaced: true },
        dispatcher: { maxWaitMs: 24_000 },
      },
      defer('turn', 8_001),
    ],
    [
      'is made when its reservation is very near, however little memory is left',
      { attempt: { reservedInMs: 5_000 }, dispatcher: { maxWaitMs: 1_000 } },
      NOW,
    ],

    ['is deferred by an open circuit', { endpoint: { circuit: open } }, defer('circuit', 30_000)],
    ['waits for a probe', { endpoint: { circuit: probing } }, wait('circuit', 400)],
    [
      'does not wait for a probe that has taken half a second',
      { endpoint: { circuit: { ...probing, sinceMs: 500 } } },
      defer('circuit', 30_000),
    ],

    [
      'moves to the slow lane when its endpoint is slow and has an attempt outside it',
      { endpoint: { isSlow: true, running: { first: 0, retry: 1, slow: 0 } } },
      SLOW_LANE,
    ],
    [
      'moves to the slow lane when another attempt waits to be the one outside it',
      { attempt: { ahead: 1 }, endpoint: { isSlow: true } },
      SLOW_LANE,
    ],
    [
      'is made as the one attempt of a slow endpoint outside the slow lane',
      { endpoint: { isSlow: true } },
      NOW,
    ],
    [
      'moves to the slow lane when slow endpoints together have enough slots',
      { endpoint: { isSlow: true }, dispatcher: { maySlowUseFast: false } },
      SLOW_LANE,
    ],
    [
      'is made when its endpoint is slow, has others outside the slow lane, and its webhook has a rate limit',
      { endpoint: { isSlow: true, hasRateLimit: true, running: { first: 9, retry: 2, slow: 0 } } },
      NOW,
    ],
    [
      'is deferred when its webhook has a rate limit and slow endpoints together have enough slots',
      { endpoint: { isSlow: true, hasRateLimit: true }, dispatcher: { maySlowUseFast: false } },
      defer('slow', 0),
    ],
    [
      'is made when it came from the slow lane of its slow endpoint',
      { attempt: { queue: 'slow' }, endpoint: { isSlow: true } },
      NOW,
    ],

    ['waits for the end of a pause', { endpoint: { pauseInMs: 30_000 } }, wait('hold', 30_000)],
    ['is deferred by a long pause', { endpoint: { pauseInMs: 30_001 } }, defer('hold', 30_001)],
    ['waits for its pace', { endpoint: { paceInMs: 200 } }, wait('pace', 200)],
    [
      'waits for the limit of its host when its own pace allows it',
      { endpoint: { hostInMs: 300 } },
      wait('host', 300),
    ],
    [
      'is deferred when the limit of its host is too low for the attempts ahead',
      { attempt: { ahead: 40 }, endpoint: { hostInMs: 500, spacingMs: 1_000 } },
      defer('host', 40_500),
    ],
    [
      'is deferred when the pace is too low for the attempts ahead',
      { attempt: { ahead: 40 }, endpoint: { paceInMs: 500, spacingMs: 1_000 } },
      defer('pace', 40_500),
    ],
    ['waits for a slot of its endpoint', { endpoint: full }, wait('concurrency')],
    [
      'waits for a slot when neither a slot nor the pace allows it',
      { endpoint: { ...full, paceInMs: 100 } },
      wait('concurrency'),
    ],
    [
      'is deferred when too many attempts ahead wait for a slot',
      { attempt: { ahead: 3_001 }, endpoint: full },
      defer('concurrency', 30_010),
    ],
    [
      'is deferred sooner when the memory runs short',
      { attempt: { ahead: 101 }, endpoint: full, dispatcher: { maxWaitMs: 1_000 } },
      defer('concurrency', 1_010),
    ],
    [
      'is deferred when reservations are booked beyond the longest wait',
      { endpoint: { ...full, bookedInMs: 60_000 } },
      defer('concurrency', 60_000),
    ],
    [
      'waits ahead of booked reservations when it was deferred itself or waits already',
      { attempt: { precedesBooked: true }, endpoint: { ...full, bookedInMs: 60_000 } },
      wait('concurrency'),
    ],
    [
      'is made before booked reservations when its endpoint is free',
      { endpoint: { bookedInMs: 60_000 } },
      NOW,
    ],

    ['waits for memory for its payload', { attempt: { lacksMemory: true } }, wait('memory')],
    [
      'is deferred for lack of memory for its payload while that of records is short',
      { attempt: { lacksMemory: true }, dispatcher: { maxWaitMs: 1_000 } },
      defer('memory', 5_000),
    ],
    ['waits for a slot of this dispatcher', { dispatcher: { hasFreeSlot: false } }, wait('busy')],
    ['waits behind the attempts ahead', { attempt: { ahead: 1 } }, wait('busy')],
    [
      'waits for a slot of this dispatcher, however short memory is and however many are ahead',
      { attempt: { ahead: 1e6 }, dispatcher: { hasFreeSlot: false, maxWaitMs: 1_000 } },
      wait('busy'),
    ],
  ])('%s', (_why, given, decision) => {
    expect(decideCase(given)).toEqual(decision);
  });
});

test('attempts may wait half a minute for their endpoint, shrinking to a second before the memory is full', () => {
  const shares = [0, 0.25, 0.5, 0.75, 1, 1.5];
  expect(shares.map(maxWaitMsAt)).toEqual([30_000, 30_000, 15_500, 1_000, 1_000, 1_000]);
});

describe('the expected wait', () => {
  it('is the longest obstacle plus the time for the attempts ahead', () => {
    const endpoint = { ...ENDPOINT, pauseInMs: 300, paceInMs: 200, spacingMs: 50 };
    expect(expectedWaitMs({ ...ATTEMPT, ahead: 4 }, endpoint)).toBe(500);
  });

  it('counts the attempts ahead once when reservations are already booked behind them', () => {
    const endpoint = { ...ENDPOINT, bookedInMs: 32_000, spacingMs: 1_000 };
    expect(expectedWaitMs({ ...ATTEMPT, ahead: 30 }, endpoint)).toBe(32_000);
  });
});

describe('the slots of an endpoint', () => {
  const mayGo = (
    queue: AttemptView['queue'],
    running: EndpointView['running'],
    more: Partial<EndpointView> = {},
  ): boolean => decideCase({ attempt: { queue }, endpoint: { running, ...more } }).kind === 'now';

  it.each([1, 2, 3, 5, 16])('are given to retries up to half of them, of %i', (concurrency) => {
    const most = Math.ceil(concurrency / 2);
    expect(mayGo('retry', { first: 0, retry: most - 1, slow: 0 }, { concurrency })).toBe(true);
    expect(mayGo('retry', { first: 0, retry: most, slow: 0 }, { concurrency })).toBe(false);
  });

  it('are reserved to a quarter for the slow lane while anything waits in it', () => {
    const twelve = { first: 8, retry: 4, slow: 0 };
    expect(mayGo('first', twelve, { waitingSlow: 1 })).toBe(false);
    expect(mayGo('first', twelve, { waitingSlow: 0 })).toBe(true);
    expect(mayGo('first', { ...twelve, first: 7 }, { waitingSlow: 1 })).toBe(true);
    expect(mayGo('slow', twelve, { waitingSlow: 1 })).toBe(true);
  });

  it('reserve one for the slow lane when there are few, and alternate when there is one', () => {
    const none = { first: 0, retry: 0, slow: 0 };
    const one = { first: 1, retry: 0, slow: 0 };
    expect(mayGo('first', one, { waitingSlow: 1, concurrency: 2 })).toBe(false);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 2 })).toBe(true);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 1 })).toBe(false);
    expect(mayGo('slow', none, { waitingSlow: 1, concurrency: 1 })).toBe(true);
    expect(mayGo('first', none, { waitingSlow: 1, concurrency: 1, wasSlowLast: true })).toBe(true);
  });

  it('never exceed its limit, over all queues together', () => {
    for (const queue of ['first', 'retry', 'slow'] as const) {
      expect(mayGo(queue, { first: 4, retry: 4, slow: 8 })).toBe(false);
    }
  });
});

describe('the order of the fast queues', () => {
  it('puts retries first at every fourth choice', () => {
    const retriesFirst = [1, 2, 3, 4, 5, 6, 7, 8].filter(
      (choice) => fastQueuesInOrder(choice)[0] === 'retry',
    );
    expect(retriesFirst).toEqual([4, 8]);
  });
});

describe('the reservation of a deferred attempt', () => {
  const bookings = { bookedUntilMs: 0, host: null, deferredByCircuit: 0 };
  const at = { nowMs: 1_000, ownMs: null, spacingMs: 100 };
  const host = { bookedUntilMs: 9_000, spacingMs: 250 };

  it.each([
    ['behind those booked at its endpoint', { ...bookings, bookedUntilMs: 9_000 }, 9_100],
    ['five seconds ahead at least', bookings, 6_100],
  ])('is booked %s', (_where, booked, atMs) => {
    const reservation = reservationOf({ because: 'pace', inMs: 500 }, booked, at);
    expect(reservation).toEqual({ atMs, countedBy: 'endpoint' });
  });

  it('is booked behind those of all endpoints of its host when the host is the limit', () => {
    const reservation = reservationOf({ because: 'host', inMs: 500 }, { ...bookings, host }, at);
    expect(reservation).toEqual({ atMs: 9_250, countedBy: 'host' });
  });

  it.each(['pace', 'host'] as const)('is the one it has while that is ahead: %s', (because) => {
    const reservation = reservationOf(
      { because, inMs: 500 },
      { ...bookings, host },
      { ...at, ownMs: 1_001 },
    );
    expect(reservation).toEqual({ atMs: 1_001, countedBy: null });
  });

  it('is spread over half an hour at most when a circuit defers', () => {
    const defer = (deferredByCircuit: number) =>
      reservationOf({ because: 'circuit', inMs: 0 }, { ...bookings, deferredByCircuit }, at);
    expect(defer(0)).toEqual({ atMs: 1_010, countedBy: 'circuit' });
    expect(defer(1e6).atMs).toBe(1_000 + 1_800_000);
  });

  it('books nothing at the endpoint for a lack of memory', () => {
    const reservation = reservationOf({ because: 'memory', inMs: 5_500 }, bookings, at);
    expect(reservation).toEqual({ atMs: 6_500, countedBy: null });
  });
});
