import { expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { refuseWhileClockIsWrong } from './app.ts';

/** Returns the reason of the refusal; null when the request goes on. */
function refusalOf(method: string, isRight: boolean): string | null {
  let isPassed = false;
  try {
    void refuseWhileClockIsWrong({ isRight: () => isRight })(
      { method } as Request,
      {} as Response,
      () => (isPassed = true),
    );
  } catch (error) {
    return (error as { reason: string }).reason;
  }
  expect(isPassed).toBe(true);
  return null;
}

test('only a wrong clock refuses requests, and only those that may store something', () => {
  const methods = ['GET', 'POST', 'PUT', 'DELETE'];
  expect(methods.map((method) => refusalOf(method, true))).toEqual([null, null, null, null]);
  const refused = methods.map((method) => refusalOf(method, false));
  expect(refused).toEqual([null, 'clock_wrong', 'clock_wrong', 'clock_wrong']);
});
