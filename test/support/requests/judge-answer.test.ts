import { describe, expect, test } from '@jest/globals';
import { createCompiler, type ApiDocument, type Operation } from '../api/api-document.ts';
import { createJudge, type ReceivedAnswer } from './judge-answer.ts';
import type { WireRequest } from './wire-request.ts';

// The judge resolves schemas by reference and reads nothing else of the document.
const document = { components: { schemas: {} } } as unknown as ApiDocument;
const judge = createJudge(createCompiler(document));

const envelope = (success: boolean) => ({
  schema: { type: 'object', required: ['success'], properties: { success: { const: success } } },
  examples: [],
  headers: [],
});

const operation: Operation = {
  id: 'getApp',
  method: 'GET',
  path: '/apps/{appId}',
  isForEveryone: false,
  parameters: [],
  needsCompanyId: false,
  body: null,
  answers: new Map([200, 400, 404].map((status) => [status, envelope(status === 200)])),
};

const good: WireRequest = {
  operation,
  what: 'valid',
  method: 'GET',
  path: '/apps/a',
  body: null,
  usesOwnIds: true,
  headers: { 'X-Request-Id': 'request-1' },
};
const bad = { ...good, what: 'no key' };

function answer(status: number, changed: Partial<ReceivedAnswer> = {}): ReceivedAnswer {
  const headers = { 'content-type': 'application/json', 'x-request-id': 'request-1' };
  return { status, headers, text: JSON.stringify({ success: status < 400 }), ...changed };
}

describe('a response', () => {
  test('that follows the document has no problems', () => {
    expect(judge(good, answer(200))).toEqual([]);
    expect(judge(bad, answer(400))).toEqual([]);
    expect(judge({ ...good, usesOwnIds: false }, answer(404))).toEqual([]);
  });

  test.each<[string, WireRequest, ReceivedAnswer, RegExp]>([
    ['has a status of its own', bad, answer(418), /status 418 is not documented/],
    ['is a fault', bad, answer(500), /a fault of the server/],
    ['has another schema', good, answer(200, { text: '{"success":false}' }), /by the schema/],
    ['is no JSON', good, answer(200, { text: '<html>' }), /by the schema/],
    ['is said to be something else', good, answer(200, { headers: {} }), /content type/],
    [
      'names another request',
      { ...good, headers: { 'X-Request-Id': 'request-2' } },
      answer(200),
      /not the one sent/,
    ],
    ['accepts what is forbidden', bad, answer(200), /the document forbids it/],
    ['refuses what is allowed', good, answer(400), /the document allows it/],
    ['does not find what is there', good, answer(404), /it is there/],
  ])('that %s is reported', (_what, request, received, problem) => {
    expect(judge(request, received).join()).toMatch(problem);
  });
});
