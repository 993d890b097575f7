import { describe, expect, test } from '@jest/globals';
import { ALL_SCOPES, allows, notGrantable, SCOPES } from './access.ts';

describe('a scope', () => {
  test.each(SCOPES)('%s is allowed by itself and by admin', (scope) => {
    expect([allows([scope], scope), allows(['admin'], scope), allows(ALL_SCOPES, scope)]).toEqual([
      ...[true, true, true],
    ]);
  });

  test.each(SCOPES)('%s is allowed by no other one', (scope) => {
    const others = SCOPES.filter((other) => other !== scope && other !== 'admin');
    expect(allows(others, scope)).toBe(false);
  });

  test('is passed on only by a key that has it', () => {
    expect(notGrantable(['keys:write', 'read'], ['read', 'webhooks:write', 'admin'])).toEqual([
      ...['webhooks:write', 'admin'],
    ]);
    expect(notGrantable(ALL_SCOPES, SCOPES)).toEqual([]);
  });
});
