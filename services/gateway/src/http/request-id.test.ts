import { describe, expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { giveRequestId } from './request-id.ts';

/** The request id that the handlers see and the one that the caller is told. */
function idFor(given: string | undefined): { seen: unknown; echoed: string; isPassedOn: boolean } {
  const locals: Record<string, unknown> = {};
  const answer = { echoed: '', isPassedOn: false };
  const request = { get: (name: string) => (name === 'x-request-id' ? given : undefined) };
  const response = {
    locals,
    setHeader: (name: string, value: string) => {
      if (name === 'X-Request-Id') answer.echoed = value;
    },
  };
  // The few members that the handler uses; express has no smaller type for them.
  void giveRequestId(request as unknown as Request, response as unknown as Response, () => {
    answer.isPassedOn = true;
  });
  return { seen: locals.requestId, ...answer };
}

describe('the request id', () => {
  test.each(['12345678', 'a.B_c-9z', 'x'.repeat(128)])('%j is taken from the caller', (given) => {
    expect(idFor(given)).toEqual({ seen: given, echoed: given, isPassedOn: true });
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
  ])('%j is replaced by one of ours', (given) => {
    const { seen, echoed, isPassedOn } = idFor(given);
    expect(echoed).toMatch(/^[0-9a-f-]{36}$/);
    expect([seen, isPassedOn]).toEqual([echoed, true]);
  });

  test('of ours is another one each time', () => {
    expect(idFor(undefined).echoed).not.toBe(idFor(undefined).echoed);
  });
});
