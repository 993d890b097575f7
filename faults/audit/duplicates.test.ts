import { describe, expect, it } from '@jest/globals';
import { acceptedDeliveries, type Evidence } from './evidence.ts';
import { duplicatesOf, hasEarlyRetry } from './duplicates.ts';

/** One message to an endpoint that refuses it once, with a retry after two seconds. */
function evidenceOf(
  requests: readonly (readonly [atMs: number, status: number])[],
  attemptCount: number,
  changed: Partial<Evidence> = {},
): Evidence {
  return {
    sent: [
      {
        n: 1,
        endpoints: [0],
        sentAtMs: 0,
        answeredAtMs: 5,
        answer: { kind: 'accepted', messageId: 'msg_1' },
      },
    ],
    notSent: 0,
    records: null,
    arrivals: requests.map(([atMs, status]) => ({
      messageId: 'msg_1',
      n: 1,
      endpoint: 0,
      atMs,
      answeredAtMs: atMs + 10,
      status,
      isSigned: true,
      isIntact: true,
    })),
    shown: new Map([['msg_1/0', { status: 'delivered', attemptCount }]]),
    recorded: new Map(),
    refusalsOf: () => 1,
    delaysMs: [2_000, 3_000],
    excuses: [{ reason: 'in flight at the kill', fromMs: 90, toMs: 100 }],
    stops: [],
    crashes: [],
    answers: {},
    slowestAnswerMs: 0,
    ...changed,
  };
}

/** Attempts that began then, and took as long as their requests. */
const recordedAt = (startsMs: readonly number[]): Evidence['recorded'] =>
  new Map([
    ['msg_1/0', startsMs.map((startedAtMs) => ({ startedAtMs, endedAtMs: startedAtMs + 10 }))],
  ]);

const duplicates = (...args: Parameters<typeof evidenceOf>) => {
  const evidence = evidenceOf(...args);
  return acceptedDeliveries(evidence).flatMap((each) => duplicatesOf(each, evidence));
};

const isEarly = (...args: Parameters<typeof evidenceOf>): boolean => {
  const evidence = evidenceOf(...args);
  return acceptedDeliveries(evidence).some((each) => hasEarlyRetry(each, evidence));
};

describe('duplicates', () => {
  it('are none when each request is a recorded attempt', () => {
    expect(
      duplicates(
        [
          [50, 404],
          [2_060, 200],
        ],
        2,
      ),
    ).toEqual([]);
  });

  it('are explained by a fault when the first request was under way, else not', () => {
    const twice = (atMs: number) =>
      duplicates(
        [
          [atMs, 200],
          [900, 200],
        ],
        1,
      ).map(({ reason }) => reason);
    expect(twice(95)).toEqual(['in flight at the kill']);
    expect(twice(81)).toEqual(['in flight at the kill']);
    expect(twice(79)).toEqual(['unexplained']);
    expect(twice(101)).toEqual(['unexplained']);
  });

  it('are found between a refused request and its retry', () => {
    const [first, ...others] = duplicates(
      [
        [50, 404],
        [700, 200],
        [2_060, 200],
      ],
      2,
    );
    expect(others).toEqual([]);
    expect(first).toMatchObject({ firstAtMs: 50, secondAtMs: 700, reason: 'unexplained' });
  });

  it('repeat the request that no recorded attempt has made, not a retry at its time', () => {
    const requests = [50, 2_060, 11_000, 14_010].map(
      (atMs) => [atMs, atMs === 14_010 ? 200 : 404] as const,
    );
    const found = duplicates(requests, 3, {
      recorded: recordedAt([49, 10_999, 14_009]),
      excuses: [{ reason: 'in flight at the kill', fromMs: 1_500, toMs: 2_065 }],
    });
    expect(found).toMatchObject([
      { firstAtMs: 2_060, secondAtMs: 11_000, reason: 'in flight at the kill' },
    ]);
  });

  it('repeat the request before them when they come too soon for a retry', () => {
    const requests = [
      [50, 404],
      [700, 200],
      [2_060, 200],
    ] as const;
    const found = duplicates(requests, 2, { recorded: recordedAt([49, 2_059]) });
    expect(found).toMatchObject([{ firstAtMs: 50, secondAtMs: 700, reason: 'unexplained' }]);
  });

  it('are requests after a 2xx that are recorded as attempts', () => {
    const requests = [50, 2_060, 5_070].map((atMs) => [atMs, 200] as const);
    expect(duplicates(requests, 3)).toMatchObject([
      { firstAtMs: 50, secondAtMs: 2_060, reason: 'unexplained' },
      { firstAtMs: 2_060, secondAtMs: 5_070, reason: 'unexplained' },
    ]);
    const excuses = [{ reason: 'in flight at the kill', fromMs: 40, toMs: 60 }];
    expect(duplicates(requests, 3, { excuses }).map(({ reason }) => reason)).toEqual([
      'in flight at the kill',
      'unexplained',
    ]);
    const ofOthers = excuses.map((each) => ({ ...each, isOf: (n: number) => n === 2 }));
    expect(duplicates(requests, 3, { excuses: ofOthers })).toMatchObject([
      { reason: 'unexplained' },
      { reason: 'unexplained' },
    ]);
  });

  it('are found after a 2xx beside another one that a fault explains', () => {
    const requests = [
      [95, 404],
      [700, 404],
      [2_710, 200],
      [5_720, 200],
    ] as const;
    expect(duplicates(requests, 3, { recorded: recordedAt([699, 2_709, 5_719]) })).toMatchObject([
      { firstAtMs: 95, secondAtMs: 700, reason: 'in flight at the kill' },
      { firstAtMs: 2_710, secondAtMs: 5_720, reason: 'unexplained' },
    ]);
  });

  it('count once when the request with the 2xx, or the one after it, was not recorded', () => {
    const requests = [95, 900].map((atMs) => [atMs, 200] as const);
    for (const startMs of [94, 899]) {
      expect(duplicates(requests, 1, { recorded: recordedAt([startMs]) })).toHaveLength(1);
    }
    const thrice = [...requests, [2_910, 200]] as const;
    expect(duplicates(thrice, 2, { recorded: recordedAt([899, 2_909]) })).toMatchObject([
      { firstAtMs: 95, secondAtMs: 900, reason: 'in flight at the kill' },
      { firstAtMs: 900, secondAtMs: 2_910, reason: 'unexplained' },
    ]);
  });

  it('are none when the second request came before the response to the first', () => {
    const slow = evidenceOf(
      [
        [50, 200],
        [2_060, 200],
      ],
      2,
    );
    const arrivals = slow.arrivals.map((each) => ({ ...each, answeredAtMs: 3_000 }));
    expect(duplicates([], 2, { arrivals })).toEqual([]);
  });

  it('count from the planned attempts where the API shows nothing', () => {
    const requests = [50, 2_060, 2_080].map((atMs) => [atMs, atMs === 50 ? 404 : 200] as const);
    expect(duplicates(requests, 0, { shown: new Map() })).toHaveLength(1);
  });
});

describe('a retry', () => {
  it('is early when less than the delay has passed since the answer to the failed request', () => {
    const retriedAt = (atMs: number) =>
      isEarly(
        [
          [50, 404],
          [atMs, 200],
        ],
        2,
      );
    expect(retriedAt(2_058)).toBe(false);
    expect(retriedAt(2_057)).toBe(true);
  });

  it('is judged by the recorded waits when a request was repeated', () => {
    const requests = [
      [50, 404],
      [700, 200],
      [2_060, 200],
    ] as const;
    const recorded = (waitMs: number) => ({ recorded: recordedAt([50, 60 + waitMs]) });
    expect(isEarly(requests, 2, recorded(2_000))).toBe(false);
    expect(isEarly(requests, 2, recorded(1_900))).toBe(true);
  });
});
