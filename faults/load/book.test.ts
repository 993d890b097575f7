import { describe, expect, it } from '@jest/globals';
import type { Arrival, Sent } from '../audit/evidence.ts';
import { createBook } from './book.ts';

const SENT: Sent = {
  n: 1,
  endpoints: [0, 1],
  sentAtMs: 100,
  answeredAtMs: 120,
  answer: { kind: 'accepted', messageId: 'msg_1' },
};

function request(endpoint: number, status: number): Arrival {
  return {
    messageId: 'msg_1',
    n: 1,
    endpoint,
    atMs: 150,
    answeredAtMs: 160,
    status,
    isSigned: true,
    isIntact: true,
  };
}

function openBook() {
  const book = createBook(3);
  const receive = (endpoint: number, status: number): void => {
    const arrival = request(endpoint, status);
    book.noteArrival(arrival);
    book.noteAnswered(arrival);
  };
  return { book, receive };
}

describe('the book of a round', () => {
  it('waits for each endpoint of an accepted message', () => {
    const { book, receive } = openBook();
    book.noteSent(SENT);
    expect(book.counts()).toEqual({ accepted: 1, delivered: 0, waiting: 2 });
    expect(book.oldestUnseenAtMs()).toBe(120);
    receive(0, 200);
    expect(book.counts()).toEqual({ accepted: 1, delivered: 1, waiting: 1 });
    receive(1, 404);
    expect(book.oldestUnseenAtMs()).toBeNull();
    expect(book.counts().waiting).toBe(1);
    receive(1, 200);
    expect(book.counts()).toEqual({ accepted: 1, delivered: 2, waiting: 0 });
  });

  it('ends a delivery that is always refused with its last attempt', () => {
    const { book, receive } = openBook();
    book.noteSent({ ...SENT, endpoints: [0] });
    receive(0, 404);
    receive(0, 404);
    expect(book.counts().waiting).toBe(1);
    receive(0, 404);
    expect(book.counts()).toEqual({ accepted: 1, delivered: 0, waiting: 0 });
  });

  it('does not wait for what arrived before its answer, nor for what was not accepted', () => {
    const { book, receive } = openBook();
    receive(0, 200);
    book.noteSent({ ...SENT, endpoints: [0] });
    book.noteSent({ ...SENT, n: 2, answer: { kind: 'unknown', why: 'no answer' } });
    expect(book.counts()).toEqual({ accepted: 1, delivered: 1, waiting: 0 });
    expect(book.oldestUnseenAtMs()).toBeNull();
  });
});
