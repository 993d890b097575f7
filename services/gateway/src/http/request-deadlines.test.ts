import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Response } from 'express';
import { createRequestDeadlines, type RequestDeadlines } from './request-deadlines.ts';

let nowMs: number;
let deadlines: RequestDeadlines;
let response: Response;

beforeEach(() => {
  nowMs = 0;
  deadlines = createRequestDeadlines(() => nowMs);
  // The one part of a response that deadlines use.
  response = { locals: {} } as unknown as Response;
});

const endless = new Promise<never>(() => undefined);
const REFUSED = { status: 503, code: 'unavailable', headers: { 'Retry-After': '2' } };

/** Returns how a step stands after everything that is due has run. */
async function stateOf(step: Promise<unknown>): Promise<unknown> {
  const settled = step.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  await new Promise(setImmediate);
  return Promise.race([settled, Promise.resolve('running')]);
}

function passTo(atMs: number): void {
  nowMs = atMs;
  deadlines.tick();
}

describe('a step of a request [security]', () => {
  test('gives its result or its error when it ends in time', async () => {
    expect(await deadlines.within(response, Promise.resolve(7))).toBe(7);
    const error = new Error('away');
    await expect(deadlines.within(response, Promise.reject(error))).rejects.toBe(error);
  });

  test('is refused with 503 and Retry-After when its time is over, and not before', async () => {
    const step = deadlines.within(response, endless);
    passTo(7_999);
    expect(await stateOf(step)).toBe('running');
    passTo(8_000);
    await expect(step).rejects.toMatchObject(REFUSED);
  });

  test('has the time that the steps before it have left', async () => {
    let end: () => void = () => undefined;
    const first = deadlines.within(response, new Promise<void>((resolve) => (end = resolve)));
    nowMs = 5_000;
    end();
    await first;
    // The body arrives.
    nowMs = 20_000;
    const second = deadlines.within(response, endless);
    passTo(22_999);
    expect(await stateOf(second)).toBe('running');
    passTo(23_000);
    await expect(second).rejects.toMatchObject(REFUSED);
  });

  test('that fails after it was refused affects nobody', async () => {
    let fail: (error: Error) => void = () => undefined;
    const late = new Promise((_, reject) => (fail = reject));
    const step = deadlines.within(response, late);
    passTo(8_000);
    await expect(step).rejects.toMatchObject(REFUSED);
    fail(new Error('the socket timed out'));
    await new Promise(setImmediate);
  });

  test('is told a second before, so that it can end with a part of its work', async () => {
    const step = deadlines.within(response, endless);
    const signal = deadlines.signalOf(response);
    passTo(6_999);
    expect(signal.aborted).toBe(false);
    passTo(7_000);
    expect([signal.aborted, await stateOf(step)]).toEqual([true, 'running']);
    expect(deadlines.signalOf(response)).toBe(signal);
  });

  test('does not delay or refuse a step of another request', async () => {
    const slow = deadlines.within(response, endless);
    nowMs = 4_000;
    const other = { locals: {} } as unknown as Response;
    const fast = deadlines.within(other, endless);
    passTo(8_000);
    await expect(slow).rejects.toMatchObject(REFUSED);
    expect(await stateOf(fast)).toBe('running');
  });
});
