import { describe, expect, it } from '@jest/globals';
import { findingsOfAcceptance, isAccepting } from './accepting.ts';
import type { Sent } from './evidence.ts';

const accepted = (n: number): Sent['answer'] => ({ kind: 'accepted', messageId: `msg_${n}` });
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
  it('is there when the messages of the last four seconds were accepted', () => {
    const sent = loadOf((n, sentAtMs) => (sentAtMs < 5_900 ? unavailable : accepted(n)));
    expect(findingsOfAcceptance(sent)).toEqual([]);
  });

  it('never came back when every message since the fault was answered with 503', () => {
    const sent = loadOf((n, sentAtMs) => (sentAtMs < 4_000 ? accepted(n) : unavailable));
    expect(findingsOfAcceptance(sent)).toEqual([
      {
        what: 'not accepting again',
        count: 1,
        examples: ['0 of 201 messages in the last 4 s'],
      },
    ]);
  });

  it('never came back when one of two gateways accepts nothing any more', () => {
    const sent = loadOf((n) => (n % 3 === 1 ? unavailable : accepted(n)));
    expect(findingsOfAcceptance(sent)).toMatchObject([{ what: 'not accepting again' }]);
  });

  it('bears a single lost response', () => {
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

  it('is not there for a message that was sent before the time and repeated until it was accepted', () => {
    const [first] = loadOf(accepted);
    if (!first) throw new Error('There is no message.');
    expect(isAccepting([{ ...first, answeredAtMs: 9_000 }], 8_000)).toBe(false);
  });
});
