import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Request, Response } from 'express';
import { createIdentify } from './identify.ts';
import {
  createSessionCookies,
  createPortalSessions,
  type PortalSession,
  type Session,
  type PortalSessions,
} from './sessions.ts';

describe('session cookies', () => {
  const session: Session = {
    kind: 'company',
    companyId: 'comp_a',
    keyHash: 'hash',
    endsAtMs: 2_000,
  };

  const statements = {
    sign: (text: string) => Buffer.from(text).toString('base64url'),
    read: (text: string) => Buffer.from(text, 'base64url').toString(),
  };

  const cookiesOf = (publicUrl: string | undefined) =>
    createSessionCookies({ statements, publicUrl, nowMs: () => 1_000 });

  const requestWith = (cookie: string): Request =>
    ({ secure: false, headers: { cookie } }) as Request;

  interface SetCookie {
    name: string;
    value: string;
    options: { path: string; secure: boolean };
  }

  function setBy(publicUrl: string | undefined): SetCookie {
    const set: SetCookie[] = [];
    const cookie = (name: string, value: string, options: SetCookie['options']): void => {
      set.push({ name, value, options });
    };
    cookiesOf(publicUrl).set(requestWith(''), { cookie } as unknown as Response, session);
    const [only] = set;
    if (!only) throw new Error('no cookie was set');
    return only;
  }

  const HTTPS = 'https://hooks.example.com/posthorn';

  describe('the cookie of a session', () => {
    test('is of this host alone over https, so that no other host of the domain can set it', () => {
      const { name, options } = setBy(HTTPS);
      expect([name, options.path, options.secure]).toEqual(['__Host-posthorn_session', '/', true]);
    });

    test('is read over https by no other name', () => {
      const { name, value } = setBy(HTTPS);
      const read = (cookie: string) => cookiesOf(HTTPS).read(requestWith(cookie), 'company');
      expect(read(`${name}=${value}`)).toEqual(session);
      expect(read(`posthorn_session=${value}`)).toBeNull();
    });

    test('is kept to the path prefix over http', () => {
      const { name, options } = setBy('http://localhost:8080/posthorn');
      expect([name, options.path, options.secure]).toEqual([
        'posthorn_session',
        '/posthorn',
        false,
      ]);
    });

    test.each([HTTPS, undefined])('counts for nothing beside another of its name: %s', (url) => {
      const { name, value } = setBy(url);
      const read = (cookie: string) => cookiesOf(url).read(requestWith(cookie), 'company');
      expect(read(`a=b; ${name}=${value}; c=d`)).toEqual(session);
      expect(read(`${name}=${value}; ${name}=${value}`)).toBeNull();
      expect(read(`${name}=other; ${name}=${value}`)).toBeNull();
    });
  });
});

describe('portal sessions', () => {
  const session: PortalSession = {
    kind: 'portal',
    companyId: 'comp_a',
    keyHash: 'key',
    endsAtMs: 1,
    appId: 'app_1',
    linkId: 'plnk_1',
    tokenHash: 'token',
    capabilities: ['view'],
  };

  let isRevoked: boolean;
  let hasApp: boolean;
  let reads: string[];
  let nowMs: number;
  /** How long the look-up of a link takes. */
  let readMs: number;
  let portalSessions: PortalSessions;

  beforeEach(() => {
    [isRevoked, hasApp, reads, nowMs, readMs] = [false, true, [], 1, 0];
    portalSessions = createPortalSessions({
      links: {
        isRevoked: (tokenHash) => {
          reads.push(tokenHash);
          nowMs += readMs;
          return Promise.resolve(isRevoked);
        },
      },
      apps: { has: () => Promise.resolve(hasApp) },
      monotonicMs: () => nowMs,
    });
  });

  const goesOn = async (): Promise<boolean> =>
    portalSessions.assertGoesOn(session).then(
      () => true,
      () => false,
    );

  describe('a visit', () => {
    test('ends when its link is revoked, at once where that was announced', async () => {
      expect(await goesOn()).toBe(true);
      isRevoked = true;
      portalSessions.forget('plnk_1');
      expect(await goesOn()).toBe(false);
    });

    test('ends two seconds after its link was revoked, however long the look-up before took', async () => {
      readMs = 1_500;
      expect(await goesOn()).toBe(true);
      isRevoked = true;
      nowMs += 499;
      expect(await goesOn()).toBe(true);
      nowMs += 1;
      expect(await goesOn()).toBe(false);
    });

    test('ends with its app', async () => {
      hasApp = false;
      await expect(portalSessions.assertGoesOn(session)).rejects.toMatchObject({ status: 401 });
    });

    test('is looked up once for many requests, also when it has ended', async () => {
      await Promise.all([goesOn(), goesOn()]);
      await goesOn();
      expect(reads).toEqual(['token']);
      portalSessions.forget('plnk_1');
      isRevoked = true;
      expect([await goesOn(), await goesOn()]).toEqual([false, false]);
      expect(reads).toHaveLength(2);
    });

    test('is nothing that a session of the dashboard needs', async () => {
      await portalSessions.assertGoesOn({
        kind: 'company',
        companyId: 'c',
        keyHash: 'k',
        endsAtMs: 1,
      });
      expect(reads).toEqual([]);
    });
  });
});

describe('who makes a request', () => {
  const session: Session = { kind: 'company', companyId: 'comp_a', keyHash: 'hash', endsAtMs: 1 };
  const key = { companyId: 'comp_a', keyId: 'key_1', scopes: [], appId: null };

  /** Returns what was looked up: a key, or the hash of the key of a session, and the company that counts. */
  async function lookedUp(headers: Record<string, string>): Promise<object> {
    let found = {};
    const identify = createIdentify({
      authenticate({ apiKey, keyHash }) {
        found = { apiKey, keyHash };
        return Promise.resolve({ ...key, expiresAtMs: null, isSuspended: false });
      },
      cookies: { read: () => session },
      portalSessions: { assertGoesOn: () => Promise.resolve() },
    });
    const request = { headers, get: (name: string) => headers[name] };
    // The few members that are used; express has no smaller type for them.
    await identify(request as unknown as Request);
    return { ...found, companyid: headers.companyid };
  }

  test.each([
    [{ 'x-api-key': 'k' }, { apiKey: 'k' }],
    [{ authorization: 'Bearer k' }, { apiKey: 'k', companyid: 'comp_a' }],
    [{ authorization: 'bearer   k' }, { apiKey: 'k', companyid: 'comp_a' }],
    [
      { authorization: 'Bearer k', companyid: 'comp_b' },
      { apiKey: 'k', companyid: 'comp_b' },
    ],
    [{ authorization: 'Bearer' }, { apiKey: '', companyid: 'comp_a' }],
    [{ authorization: 'Bearerk' }, {}],
    [{ authorization: 'Basic k' }, {}],
    [{ authorization: 'Basic b', 'x-api-key': 'k' }, { apiKey: 'k' }],
    [
      { authorization: 'Bearer b', 'x-api-key': 'k' },
      { apiKey: '', companyid: 'comp_a' },
    ],
    [
      { authorization: 'Bearer k', 'x-api-key': '' },
      { apiKey: '', companyid: 'comp_a' },
    ],
  ])('with %j is known by %j', async (headers, expected) => {
    const nothing = { apiKey: undefined, keyHash: undefined, companyid: undefined };
    expect(await lookedUp({ ...headers })).toEqual({ ...nothing, ...expected });
  });

  test('is known by a session whatever Authorization a proxy adds, and by x-api-key before it', async () => {
    const named = { 'x-posthorn-session': '1' };
    expect(await lookedUp({ ...named, authorization: 'Bearer of-a-proxy' })).toMatchObject({
      keyHash: 'hash',
    });
    expect(await lookedUp({ ...named, 'x-api-key': 'k' })).toMatchObject({ apiKey: 'k' });
  });
});
