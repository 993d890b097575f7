import { describe, expect, test } from '@jest/globals';
import { ALL_SCOPES, type Scope } from '@posthorn/domain/access.ts';
import { rightsFor, rightsLike } from './api-keys.ts';

const makerWith = (
  scopes: readonly Scope[],
  appId: string | null = null,
  endsAtMs: number | null = null,
) => ({ scopes, appId, endsAtMs });

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

  test('made by a key with an end end no later', () => {
    const maker = makerWith(ALL_SCOPES, null, 5_000);
    expect(rightsFor(maker, {})).toEqual({ expiresAt: new Date(5_000) });
    for (const expiresAtMs of [4_999, 5_000]) {
      expect(rightsFor(maker, { expiresAtMs })).toEqual({ expiresAt: new Date(expiresAtMs) });
    }
    expect(() => rightsFor(maker, { expiresAtMs: 5_001 })).toThrow('1970-01-01T00:00:05.000Z');
  });

  test('that takes the place of another one end no later than the maker', () => {
    const maker = makerWith(ALL_SCOPES, null, 5_000);
    const same = { expiresAt: new Date(5_000) };
    expect(rightsLike(maker, same)).toEqual(same);
    expect(() => rightsLike(maker, {})).toThrow('ends no later');
    expect(() => rightsLike(maker, { expiresAt: new Date(5_001) })).toThrow('ends no later');
  });

  test('that takes the place of another one are the same', () => {
    const old = { scopes: ['read' as const], appId: 'app_1', expiresAt: new Date(5_000) };
    expect(rightsLike(makerWith(ALL_SCOPES), old)).toEqual(old);
    expect(() => rightsLike(makerWith(['keys:write']), {})).toThrow('the scope admin');
  });
});
