import { expect, test } from '@jest/globals';
import { parseKeyRights } from './key-options.ts';

test('the options of a key are scopes, an app and an end', () => {
  const options = {
    scopes: 'read, messages:write',
    app: 'app_1',
    expires: '2026-08-01T09:30:00+02:00',
  };
  expect(parseKeyRights(options)).toEqual({
    scopes: ['read', 'messages:write'],
    appId: 'app_1',
    expiresAtMs: Date.parse('2026-08-01T07:30:00Z'),
  });
});

test('without options nothing is limited', () => {
  expect(Object.values(parseKeyRights({}))).toEqual([undefined, undefined, undefined]);
});

test.each(['', 'read,', 'write', 'read,READ'])('the scopes %j are refused', (scopes) => {
  expect(() => parseKeyRights({ scopes })).toThrow(
    '--scopes must be one or more of messages:write,read,webhooks:write,keys:write,admin.',
  );
});

test('every wrong option is named', () => {
  const problem = /^--scopes must be .*\n--expires must be an ISO time with a zone/;
  expect(() => parseKeyRights({ scopes: 'all', expires: 'tomorrow' })).toThrow(problem);
});
