import { describe, expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { assignRequestId, refuseWhileClockIsWrong } from './app.ts';

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

/** Returns the request id that the handlers see and the one in the response. */
function idFor(given: string | undefined): {
  seen: unknown;
  returned: string;
  isPassedOn: boolean;
} {
  const locals: Record<string, unknown> = {};
  const result = { returned: '', isPassedOn: false };
  const request = { get: (name: string) => (name === 'x-request-id' ? given : undefined) };
  const response = {
    locals,
    setHeader: (name: string, value: string) => {
      if (name === 'X-Request-Id') result.returned = value;
    },
  };
  // The few members that the handler uses; express has no smaller type for them.
  void assignRequestId(request as unknown as Request, response as unknown as Response, () => {
    result.isPassedOn = true;
  });
  return { seen: locals.requestId, ...result };
}

describe('the request id', () => {
  test.each(['12345678', 'a.B_c-9z', 'x'.repeat(128)])('%j is taken from the client', (given) => {
    expect(idFor(given)).toEqual({ seen: given, returned: given, isPassedOn: true });
  });

  test.each([
    ...[
      undefined,
      '',
      '1234567',
      'x'.repeat(129),
      '12345678\n',
      '1234 5678',
      '<script>',
      'schlüssel',
    ],
  ])('%j is replaced by a generated one', (given) => {
    const { seen, returned, isPassedOn } = idFor(given);
    expect(returned).toMatch(/^[0-9a-f-]{36}$/);
    expect([seen, isPassedOn]).toEqual([returned, true]);
  });

  test('is different each time it is generated', () => {
    expect(idFor(undefined).returned).not.toBe(idFor(undefined).returned);
  });
});
