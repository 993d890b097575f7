import { expect } from '@jest/globals';
import type { ApiAnswer } from './api-client.ts';

/** Matches the prefix and 26 characters of a lower-case ULID (Crockford's alphabet). */
export const anId = (prefix: string): unknown =>
  expect.stringMatching(new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`));

/** Matches ISO 8601 in UTC with milliseconds. */
export const aTime: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const ENVELOPE_KEYS = new Set(['success', 'data', 'nextCursor']);

/** Expects the envelope of a success and returns its `data`; the caller knows its type. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function dataOf<Shown>(answer: ApiAnswer, status = 200): Shown {
  const { success, code } = answer.body;
  expect([answer.status, success, code]).toEqual([status, true, undefined]);
  const { message, ...rest } = answer.body;
  expect(message).toMatch(/\S/);
  const unexpected = Object.keys(rest).filter((key) => !ENVELOPE_KEYS.has(key));
  expect(unexpected).toEqual([]);
  return rest.data as Shown;
}

/** Expects the response to a delete: nothing but `success` and `message`. */
export function expectDeleted(answer: ApiAnswer): void {
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ success: true, message: expect.stringMatching(/\S/) });
}

/** Expects the envelope of a failure, and these paths among its problems. */
export function expectFailure(
  answer: ApiAnswer,
  status: number,
  code: string,
  paths: string[] = [],
): void {
  const { success, message, requestId, errors = [], ...rest } = answer.body;
  expect([answer.status, rest]).toEqual([status, { code }]);
  expect(success).toBe(false);
  expect(message).toMatch(/\S/);
  expect(requestId).toBe(answer.headers.get('x-request-id'));
  for (const problem of errors) {
    expect(problem).toEqual({ path: expect.any(String), message: expect.stringMatching(/\S/) });
  }
  expect([...new Set(errors.map(({ path }) => path))].sort()).toEqual([...paths].sort());
}

export function expectInvalid(answer: ApiAnswer, ...paths: string[]): void {
  expectFailure(answer, 400, 'invalid_request', paths);
}

export function expectNotFound(answer: ApiAnswer): void {
  expectFailure(answer, 404, 'not_found');
}
