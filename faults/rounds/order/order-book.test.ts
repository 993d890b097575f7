import { describe, expect, it } from '@jest/globals';
import type { Arrival } from '../../audit/evidence.ts';
import { auditOrder } from '../../audit/order.ts';
import { OrderBook, sequenceOf, type Shown } from './order-book.ts';
import { FINAL, KEYS } from './order-plan.ts';

const [BLOCK, SKIP] = [0, 1];
const ATTEMPTS = 4;
/** The first two messages of key 0. */
const [FIRST, SECOND] = [0, KEYS];
const NOTHING: Shown = { ended: [], listed: new Map() };

function open() {
  const book = new OrderBook(ATTEMPTS);
  book.noteAccepted(FIRST, 'msg_1');
  book.noteAccepted(SECOND, 'msg_2');
  const idOf = (n: number): string => (n === FIRST ? 'msg_1' : 'msg_2');
  const begin = (n: number, endpoint: number, messageId = idOf(n)): Arrival => {
    const arrival: Arrival = {
      messageId,
      n,
      endpoint,
      atMs: 0,
      answeredAtMs: 0,
      status: 0,
      isSigned: true,
      isIntact: true,
    };
    book.noteArrival(arrival);
    return arrival;
  };
  const answer = (arrival: Arrival, status: number): void => {
    book.noteAnswered({ ...arrival, status });
  };
  const receive = (n: number, endpoint: number, status = 200): void => {
    answer(begin(n, endpoint), status);
  };
  const findings = (shown: Shown = NOTHING): string[] =>
    auditOrder(book.keys(shown)).map(({ what }) => what);
  return { book, begin, answer, receive, findings };
}

describe('the book of the round of order', () => {
  it('has nothing for the audit when both endpoints got both messages in order', () => {
    const { book, receive, findings } = open();
    for (const endpoint of [BLOCK, SKIP]) {
      receive(FIRST, endpoint, 500);
      receive(FIRST, endpoint);
      receive(SECOND, endpoint);
    }
    expect(findings()).toEqual([]);
    expect(book.open(NOTHING)).toEqual(new Set());
  });

  it('leaves out repeats of a message', () => {
    const { receive, findings } = open();
    for (const endpoint of [BLOCK, SKIP]) {
      receive(FIRST, endpoint);
      receive(SECOND, endpoint);
      receive(FIRST, endpoint);
    }
    expect(findings()).toEqual([]);
  });

  it('has a request that came while the one in front was open as early', () => {
    const { begin, answer, receive, findings } = open();
    receive(FIRST, SKIP);
    receive(SECOND, SKIP);
    const first = begin(FIRST, BLOCK);
    const second = begin(SECOND, BLOCK);
    answer(first, 200);
    answer(second, 200);
    expect(findings()).toEqual(['an attempt before its turn']);
  });

  it('has a message without a request as lost, and its key as open', () => {
    const { book, receive, findings } = open();
    receive(FIRST, BLOCK);
    receive(SECOND, BLOCK);
    receive(FIRST, SKIP);
    expect(findings()).toEqual(['lost with an ordering key']);
    expect(book.open(NOTHING)).toEqual(new Set([sequenceOf(0, SKIP)]));
  });

  it('lets the next one begin after a final status, or after as many failures as the schedule has', () => {
    const { begin, answer, receive, findings } = open();
    const ended = [BLOCK, SKIP].map((endpoint) => {
      return { n: FIRST, endpoint, status: 'exhausted', deliveryId: 'dlv_1' } as const;
    });
    const listed: Shown['listed'] = new Map([
      [sequenceOf(0, BLOCK), { state: 'blocked', headDeliveryId: 'dlv_1', waiting: 1 }],
    ]);
    receive(FIRST, BLOCK, FINAL);
    for (let nth = 1; nth < ATTEMPTS; nth += 1) receive(FIRST, SKIP, 500);
    const last = begin(FIRST, SKIP);
    answer(last, 500);
    receive(SECOND, SKIP);
    expect(findings({ ended, listed })).toEqual([]);
  });

  it('counts from the moment at which the round asks to skip', () => {
    const { book, receive, findings } = open();
    receive(FIRST, SKIP);
    receive(SECOND, SKIP);
    receive(FIRST, BLOCK, FINAL);
    const ended = [
      { n: FIRST, endpoint: BLOCK, status: 'exhausted', deliveryId: 'dlv_1' },
    ] as const;
    book.noteAsked({ n: FIRST, endpoint: BLOCK }, 'skippedAt');
    receive(SECOND, BLOCK);
    expect(findings({ ended, listed: new Map() })).toEqual([]);
  });

  it('notices a message that comes under another id', () => {
    const { begin, answer, receive, findings } = open();
    receive(FIRST, SKIP);
    receive(SECOND, SKIP);
    receive(FIRST, BLOCK);
    answer(begin(SECOND, BLOCK, 'msg_3'), 200);
    expect(findings()).toEqual(['one message under two ids']);
  });
});
