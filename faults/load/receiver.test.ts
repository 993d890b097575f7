import { afterEach, beforeEach, describe, expect, it, jest, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { createBook, type Book } from './book.ts';
import { payloadOf, type Receiver, startReceiver, isIntact, readPayload } from './receiver.ts';
import { type Plan, usualPlan } from './plan.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

describe('the receiver of the fault suite', () => {
  let receiver: Receiver;
  let book: Book;
  let plan: Plan;

  beforeEach(async () => {
    receiver = await startReceiver();
    book = createBook(3);
    plan = usualPlan;
    receiver.open({ run: 'r', plan: () => plan, book, secrets: [SECRET] });
  });

  afterEach(async () => {
    await receiver.close();
  });

  /** Sends as a dispatcher does; returns the status. */
  async function deliver(body: string, signedWith = SECRET): Promise<number> {
    const sentAt = new Date();
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1_000)),
      'webhook-signature': new Webhook(signedWith).sign('msg_1', sentAt, body),
    };
    const response = await fetch(receiver.urlOf('r', 0), { method: 'POST', headers, body });
    return response.status;
  }

  it('records each request, whether it is signed, and whether each byte is right', async () => {
    const body = payloadOf('r', 0);
    expect(await deliver(body)).toBe(200);
    expect(book.arrivals).toMatchObject([
      { messageId: 'msg_1', n: 0, endpoint: 0, status: 200, isSigned: true, isIntact: true },
    ]);
    await deliver(body, `whsec_${Buffer.alloc(32, 8).toString('base64')}`);
    expect(book.arrivals.at(-1)).toMatchObject({ isSigned: false, isIntact: true });
    await deliver(body.replace('xx', 'xy'));
    expect(book.arrivals.at(-1)).toMatchObject({ isSigned: true, isIntact: false });
    await deliver(payloadOf('another run', 0));
    expect(book.arrivals.at(-1)).toMatchObject({ n: null });
  });

  it('refuses as often as the plan requires', async () => {
    const refusedTwice = payloadOf('r', 2);
    const statuses = [];
    for (let nth = 1; nth <= 3; nth += 1) statuses.push(await deliver(refusedTwice));
    expect(statuses).toEqual([404, 404, 200]);
  });

  it('ends a connection without a complete response', async () => {
    plan = { ...usualPlan, replyTo: () => ({ kind: 'broken', how: 'reset' }) };
    await expect(deliver(payloadOf('r', 0))).rejects.toThrow('fetch failed');
    expect(book.arrivals).toMatchObject([{ status: 0 }]);
  });

  it('counts the concurrent requests of an endpoint', async () => {
    const slowly = (afterMs: number): void => {
      plan = { ...usualPlan, replyTo: () => ({ kind: 'status', status: 200, afterMs }) };
    };
    slowly(500);
    // What a request works with is real.
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    const delivered = Promise.all([0, 4, 5].map((n) => deliver(payloadOf('r', n))));
    while (receiver.peakOf(0) < 3) await new Promise(setImmediate);
    jest.advanceTimersByTime(500);
    jest.useRealTimers();
    await delivered;
    slowly(0);
    await deliver(payloadOf('r', 6));
    expect(receiver.peakOf(0)).toBe(3);
  });

  it('counts requests after its round, once', async () => {
    receiver.closeRound('r');
    expect(await deliver(payloadOf('r', 0))).toBe(200);
    expect(book.arrivals).toEqual([]);
    expect(receiver.takeLate()).toBe(1);
    expect(receiver.takeLate()).toBe(0);
  });
});

test('a payload has its run and number, and each changed byte is detected', () => {
  const text = payloadOf('r1', 42);
  expect(readPayload(text)).toEqual({ run: 'r1', n: 42 });
  expect(isIntact(Buffer.from(text), 'r1', 42)).toBe(true);
  expect(isIntact(Buffer.from(JSON.stringify(JSON.parse(text))), 'r1', 42)).toBe(false);
  expect(isIntact(Buffer.from(text.replace('xx', 'xy')), 'r1', 42)).toBe(false);
  expect(isIntact(Buffer.from(text), 'r1', 43)).toBe(false);
  expect(readPayload('{}')).toBeNull();
});
