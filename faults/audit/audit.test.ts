import { describe, expect, it } from '@jest/globals';
import { audit, type Limits, findingsOfAcceptance, isAccepting } from './audit.ts';
import type { Arrival, Evidence, Sent } from './evidence.ts';

const LIMITS: Limits = {
  endedAtMs: 10_000,
  recoverWithinMs: 5_000,
  stopWithinMs: 35_000,
  answerWithinMs: 1_000,
  answers: ['503'],
  maxCopies: (deliveries) => 9 + 0.01 * deliveries,
  losesNoAnswer: false,
};

function sentMessage(n: number, answer: Sent['answer'] = accepted(n)): Sent {
  return { n, endpoints: [0], sentAtMs: 1_000, answeredAtMs: 1_010, answer };
}

/** A message that was accepted and delivered long after the others. */
const LAST = {
  sent: { ...sentMessage(99), sentAtMs: 9_000, answeredAtMs: 9_010 },
  arrival: arrival(99, { atMs: 9_050 }),
  shown: ['msg_99/0', { status: 'delivered', attemptCount: 1 }],
} as const;

function accepted(n: number): Sent['answer'] {
  return { kind: 'accepted', messageId: `msg_${n}` };
}

function arrival(n: number, changed: Partial<Arrival> = {}): Arrival {
  const atMs = changed.atMs ?? 1_050;
  return {
    messageId: `msg_${n}`,
    n,
    endpoint: 0,
    atMs,
    answeredAtMs: atMs + 10,
    status: 200,
    isSigned: true,
    isIntact: true,
    ...changed,
  };
}

/** One message, delivered at once. */
function evidenceOf(changed: Partial<Evidence> = {}): Evidence {
  return {
    sent: [sentMessage(1)],
    notSent: 0,
    records: null,
    arrivals: [arrival(1)],
    shown: new Map([['msg_1/0', { status: 'delivered', attemptCount: 1 }]]),
    recorded: new Map(),
    refusalsOf: () => 0,
    delaysMs: [2_000, 3_000],
    excuses: [],
    stops: [],
    crashes: [],
    answers: { 202: 1 },
    slowestAnswerMs: 10,
    ...changed,
  };
}

const findingsOf = (changed: Partial<Evidence>): Record<string, number> =>
  Object.fromEntries(
    audit(evidenceOf(changed), LIMITS).findings.map(({ what, count }) => [what, count]),
  );

describe('the audit', () => {
  it('finds nothing when everything arrived once', () => {
    expect(audit(evidenceOf(), LIMITS)).toMatchObject({
      accepted: 1,
      deliveries: 1,
      delivered: 1,
      lost: 0,
      unknown: 0,
      duplicatesByReason: {},
      earlyRetries: 0,
      recoveredAfterMs: 0,
      slowestAnswerMs: 10,
      findings: [],
    });
  });

  it('counts the messages of the load that were not sent', () => {
    expect(audit(evidenceOf({ notSent: 7 }), LIMITS)).toMatchObject({ notSent: 7, findings: [] });
  });

  it('finds an accepted message that never arrived', () => {
    expect(findingsOf({ arrivals: [] })).toMatchObject({ lost: 1, 'no recovery': 1 });
  });

  it('finds a gateway that never accepts a message again', () => {
    const away = { kind: 'unknown', why: '503' } as const;
    const sent = Array.from({ length: 500 }, (_, n) => ({
      ...sentMessage(n, away),
      sentAtMs: 11_000,
    }));
    const none = { arrivals: [], shown: new Map(), answers: { 503: 500 } };
    expect(findingsOf({ ...none, sent })).toEqual({ 'nothing accepted': 1 });
    const one = { arrivals: [arrival(1)], answers: { 202: 1, 503: 500 } };
    expect(findingsOf({ ...one, sent: [sentMessage(1), ...sent.slice(2)] })).toEqual({
      'not accepting again': 1,
    });
  });

  it('counts a message as lost when its endpoint refused every request that came', () => {
    const retried = { refusalsOf: () => 1, arrivals: [arrival(1, { status: 404 })] };
    expect(findingsOf(retried)).toEqual({ lost: 1 });
  });

  it('counts a message whose answer was lost neither as lost nor as a duplicate', () => {
    const lostAnswer = sentMessage(1, { kind: 'unknown', why: 'no answer' });
    const shown = new Map([LAST.shown]);
    const seen = { sent: [lostAnswer, LAST.sent], arrivals: [arrival(1), LAST.arrival], shown };
    expect(audit(evidenceOf(seen), LIMITS)).toMatchObject({
      accepted: 1,
      unknown: 1,
      unknownArrived: 1,
      lost: 0,
      findings: [],
    });
    expect(findingsOf({ ...seen, arrivals: [LAST.arrival] })).toEqual({});
  });

  it('finds a lost answer to an accepted message where none may be lost', () => {
    const lostAnswer = sentMessage(1, { kind: 'unknown', why: 'connection closed' });
    const evidence = evidenceOf({
      sent: [lostAnswer, LAST.sent],
      arrivals: [arrival(1), LAST.arrival],
      shown: new Map([LAST.shown]),
    });
    const { findings } = audit(evidence, { ...LIMITS, losesNoAnswer: true });
    expect(findings).toEqual([{ what: 'accepted without an answer', count: 1, examples: [] }]);
  });

  it('finds a message that was repeated by the client and accepted twice', () => {
    const lostAnswer = sentMessage(1, { kind: 'unknown', why: 'no answer' });
    const twice = [arrival(1), arrival(1, { messageId: 'msg_9' })];
    const repeated = { sent: [lostAnswer, LAST.sent], arrivals: [...twice, LAST.arrival] };
    expect(findingsOf({ ...repeated, shown: new Map([LAST.shown]) })).toEqual({
      'received and never sent': 1,
    });
    expect(findingsOf({ arrivals: twice })).toEqual({ 'received and never sent': 1 });
  });

  it('finds requests that were never sent, that were refused, and that are for another endpoint', () => {
    const none = { 'received and never sent': 1 };
    expect(findingsOf({ arrivals: [arrival(1), arrival(2)] })).toEqual(none);
    expect(findingsOf({ arrivals: [arrival(1), arrival(1, { endpoint: 3 })] })).toEqual(none);
    const refused = { ...sentMessage(2, { kind: 'refused', status: 400 }), sentAtMs: -9_000 };
    const sent = [sentMessage(1), refused];
    expect(findingsOf({ sent, arrivals: [arrival(1), arrival(2)] })).toEqual(none);
  });

  it('finds a wrong signature and a wrong body', () => {
    expect(findingsOf({ arrivals: [arrival(1, { isSigned: false })] })).toEqual({
      'wrong signature': 1,
    });
    expect(findingsOf({ arrivals: [arrival(1, { isIntact: false })] })).toEqual({
      'wrong body': 1,
    });
  });

  it('finds a status that the receiver does not confirm', () => {
    const shownAs = (status: string, attemptCount: number) => ({
      shown: new Map([['msg_1/0', { status, attemptCount }]]),
    });
    const disagree = { 'the API and the receiver disagree': 1 };
    expect(findingsOf(shownAs('pending', 1))).toEqual(disagree);
    expect(findingsOf(shownAs('exhausted', 1))).toEqual(disagree);
    expect(findingsOf(shownAs('delivered', 2))).toEqual(disagree);
    expect(findingsOf({ shown: new Map() })).toEqual(disagree);
  });

  it('expects the end of the schedule where the endpoint refuses every request', () => {
    const refusing = {
      refusalsOf: () => Infinity,
      arrivals: [1_050, 3_070, 6_090].map((atMs) => arrival(1, { atMs, status: 404 })),
      shown: new Map([['msg_1/0', { status: 'exhausted', attemptCount: 3 }]]),
    };
    expect(findingsOf(refusing)).toEqual({});
    const short = { shown: new Map([['msg_1/0', { status: 'exhausted', attemptCount: 2 }]]) };
    expect(findingsOf({ ...refusing, ...short })).toMatchObject({
      'the API and the receiver disagree': 1,
    });
  });

  it('finds a service that crashed, one that was killed while it stopped, and a slow one', () => {
    const stops = [
      { service: 'gateway-1', tookMs: 200, exit: 'exit code 0' },
      { service: 'gateway-2', tookMs: 36_000, exit: 'exit code 0' },
      { service: 'retry-1', tookMs: 300, exit: 'exit code 1' },
    ];
    expect(findingsOf({ stops, crashes: ['dispatcher-1: exit code 1'] })).toEqual({
      'a service ended by itself': 1,
      'a stop went wrong': 2,
    });
  });

  it('finds more copies of records than the fault allows', () => {
    expect(findingsOf({ records: 10 })).toEqual({});
    expect(findingsOf({ records: 11 })).toEqual({ 'too many records': 1 });
    const counted = audit(evidenceOf({ records: 11 }), { ...LIMITS, maxCopies: null });
    expect(counted).toMatchObject({ records: 11, findings: [] });
  });

  it('finds a sweep that publishes beside a living gateway: 381,939 records for 360,001 messages', () => {
    const shown = new Map(
      Array.from({ length: 360_001 }, (_, n) => [
        `msg_${n}/0`,
        { status: 'delivered', attemptCount: 1 },
      ]),
    );
    expect(findingsOf({ shown, records: 381_939 })).toEqual({ 'too many records': 1 });
  });

  it('finds answers that the fault does not allow, and slow ones', () => {
    expect(findingsOf({ answers: { 202: 1, 503: 4, 500: 2 } })).toEqual({ 'wrong answer': 1 });
    expect(findingsOf({ slowestAnswerMs: 1_001 })).toEqual({ 'slow answer': 1 });
  });

  it('measures the longest wait for a first request, and how late a retry was at most', () => {
    const retried = audit(
      evidenceOf({
        arrivals: [arrival(1, { status: 500 }), arrival(1, { atMs: 3_160 })],
        refusalsOf: () => 1,
        shown: new Map([['msg_1/0', { status: 'delivered', attemptCount: 2 }]]),
      }),
      LIMITS,
    );
    expect(retried).toMatchObject({ longestFirstMs: 40, latestRetryMs: 100, findings: [] });
  });

  it('measures how long after the fault deliveries still were late', () => {
    const verdictAt = (atMs: number) =>
      audit(evidenceOf({ arrivals: [arrival(1, { atMs })] }), LIMITS);
    expect(verdictAt(14_000)).toMatchObject({ recoveredAfterMs: 4_000, findings: [] });
    expect(verdictAt(15_001).findings.map(({ what }) => what)).toEqual(['slow recovery']);
    const unlimited = { ...LIMITS, recoverWithinMs: null };
    expect(
      audit(evidenceOf({ arrivals: [arrival(1, { atMs: 15_001 })] }), unlimited),
    ).toMatchObject({ recoveredAfterMs: 5_001, findings: [] });
  });
});

const unavailable: Sent['answer'] = { kind: 'unknown', why: '503' };

/** Ten seconds of load, one message every 20 ms. */
const loadOf = (answerOf: (n: number, sentAtMs: number) => Sent['answer']): Sent[] =>
  Array.from({ length: 500 }, (_, n) => {
    const sentAtMs = n * 20;
    return {
      n,
      endpoints: [0],
      sentAtMs,
      answeredAtMs: sentAtMs + 5,
      answer: answerOf(n, sentAtMs),
    };
  });

describe('the acceptance after a fault', () => {
  it('is found when the messages of the last four seconds were accepted', () => {
    const sent = loadOf((n, sentAtMs) => (sentAtMs < 5_900 ? unavailable : accepted(n)));
    expect(findingsOfAcceptance(sent)).toEqual([]);
  });

  it('is missing when every message since the fault was answered with 503', () => {
    const sent = loadOf((n, sentAtMs) => (sentAtMs < 4_000 ? accepted(n) : unavailable));
    expect(findingsOfAcceptance(sent)).toEqual([
      {
        what: 'not accepting again',
        count: 1,
        examples: ['0 of 201 messages in the last 4 s'],
      },
    ]);
  });

  it('is missing when one of two gateways accepts no message after the fault', () => {
    const sent = loadOf((n) => (n % 3 === 1 ? unavailable : accepted(n)));
    expect(findingsOfAcceptance(sent)).toMatchObject([{ what: 'not accepting again' }]);
  });

  it('is found despite a single lost response', () => {
    const sent = loadOf((n) => (n === 480 ? unavailable : accepted(n)));
    expect(findingsOfAcceptance(sent)).toEqual([]);
  });

  it('is missing in a round that accepted nothing', () => {
    const nothing = { what: 'nothing accepted', count: 1 };
    expect(findingsOfAcceptance(loadOf(() => unavailable))).toMatchObject([nothing]);
    expect(findingsOfAcceptance([])).toMatchObject([nothing]);
  });

  it('is awaited until most of the messages sent since a time were accepted', () => {
    const sent = loadOf((n, sentAtMs) => (sentAtMs < 8_000 ? unavailable : accepted(n)));
    expect(isAccepting(sent, 8_000)).toBe(true);
    expect(isAccepting(sent, 7_000)).toBe(false);
    expect(isAccepting(sent, 10_000)).toBe(false);
  });

  it('does not count a repeated older message', () => {
    const [first] = loadOf(accepted);
    if (!first) throw new Error('There is no message.');
    expect(isAccepting([{ ...first, answeredAtMs: 9_000 }], 8_000)).toBe(false);
  });
});
