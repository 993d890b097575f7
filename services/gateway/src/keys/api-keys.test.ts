import { describe, expect, test } from '@jest/globals';
import { ALL_SCOPES, type Scope } from '@posthorn/domain/access.ts';
import { rightsFor, rightsLike } from './api-keys.ts';

const makerWith = (scopes: readonly Scope[], appId: string | null = null) => ({
  companyId: 'comp_1',
  scopes,
  appId,
});

describe('the rights of a new key [security]', () => {
  test('are all when nothing is asked for', () => {
    expect(rightsFor(makerWith(ALL_SCOPES), {})).toEqual({});
  });

  test('are the scopes, the app and the end that are asked for', () => {
    const asked = {
      scopes: ['read' as const, 'read' as const],
      appId: 'app_1',
      expiresAtMs: 5_000,
    };
    expect(rightsFor(makerWith(ALL_SCOPES), asked)).toEqual({
      scopes: ['read'],
      appId: 'app_1',
      expiresAt: new Date(5_000),
    });
  });

  test.each<[Scope[], Scope[] | undefined, string]>([
    [['keys:write'], undefined, 'admin'],
    [['keys:write', 'read'], ['read', 'webhooks:write'], 'webhooks:write'],
  ])('cannot be given by a maker with %j: %j', (own, scopes, missing) => {
    expect(() => rightsFor(makerWith(own), { scopes })).toThrow(
      `This API key does not have the scope ${missing}, so it cannot give it.`,
    );
  });

  test('made by a key of one app are of this app', () => {
    expect(rightsFor(makerWith(ALL_SCOPES, 'app_1'), {})).toEqual({ appId: 'app_1' });
  });

  test('that takes the place of another one are the same', () => {
    const old = { scopes: ['read' as const], appId: 'app_1', expiresAt: new Date(5_000) };
    expect(rightsLike(makerWith(ALL_SCOPES), old)).toEqual(old);
    expect(() => rightsLike(makerWith(['keys:write']), {})).toThrow('the scope admin');
  });
});
