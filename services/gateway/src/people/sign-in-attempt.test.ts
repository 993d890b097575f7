import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';
import fc from 'fast-check';
import { type Attempt, ATTEMPT_MS, createAttemptCookies, pageNamed } from './sign-in-attempt.ts';

describe('pageNamed [security]', () => {
  it.each([
    '/dashboard/',
    '/dashboard/webhooks',
    '/dashboard/webhooks?status=failing&name=a%20b#top',
  ])('returns the page %s', (page) => {
    expect(pageNamed(page)).toBe(page);
  });

  it.each([
    '',
    '/dashboard',
    '/dashboardx/',
    'https://evil.example/dashboard/',
    '//evil.example',
    '/dashboard//evil.example',
    '/dashboard/\\evil.example',
    '/dashboard/../evil',
    '/dashboard/%2E%2e/evil',
    '/dashboard/a\nb',
    '/dashboard/ä',
    '/dashboard/portal/comp_1',
    '/dashboard/x/../portal/',
    '/dashboard/api/session',
    'javascript:alert(1)',
    `/dashboard/${'x'.repeat(990)}`,
  ])('returns the first page in place of %j', (page) => {
    expect(pageNamed(page)).toBe('/dashboard/');
  });

  it('returns a path below /dashboard/ of any host, for every text', () => {
    const pieces = fc.constantFrom(
      '/',
      '\\',
      '.',
      '..',
      '%2e',
      '%2f',
      '@',
      ':',
      '?',
      '#',
      'a',
      '\t',
    );
    const texts = fc.oneof(
      fc.string(),
      fc.array(pieces).map((list) => `/dashboard/${list.join('')}`),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const page = pageNamed(text);
        const url = new URL(`https://hooks.example.com/posthorn${page}`);
        expect(url.origin).toBe('https://hooks.example.com');
        expect(url.pathname.startsWith('/posthorn/dashboard/')).toBe(true);
      }),
    );
  });
});

describe('the cookie of an attempt [security]', () => {
  const attempt: Attempt = {
    state: 'state-of-the-attempt',
    nonce: 'n',
    verifier: 'v',
    to: '/dashboard/',
    companyId: null,
    invitation: null,
    replaces: null,
    endsAtMs: ATTEMPT_MS,
  };

  interface SetCookie {
    name: string;
    value: string;
    options: object;
  }

  /** The browser at a gateway with this PUBLIC_URL; `clock.nowMs` is the time. */
  function browserAt(publicUrl: string) {
    const clock = { nowMs: 0 };
    const set: SetCookie[] = [];
    const cleared: string[] = [];
    const statements = {
      sign: (text: string) => Buffer.from(text).toString('base64url'),
      read: (text: string) => Buffer.from(text, 'base64url').toString(),
    };
    const cookies = createAttemptCookies({ statements, publicUrl, nowMs: () => clock.nowMs });
    // The parts of a request and a response that cookies use.
    const request = { headers: {} } as unknown as Request;
    const response = {
      cookie(name: string, value: string, options: object) {
        set.push({ name, value, options });
        request.headers.cookie = `${name}=${value}`;
      },
      clearCookie: (name: string) => cleared.push(name),
    } as unknown as Response;
    return {
      clock,
      set,
      cleared,
      store: () => {
        cookies.store(request, response, attempt);
      },
      take: (state: string) => cookies.take(request, response, state),
    };
  }

  it('is that of one host over https, for ten minutes, and no script reads it', () => {
    const browser = browserAt('https://hooks.example.com/posthorn');
    browser.store();
    expect(browser.set).toMatchObject([
      {
        name: '__Host-posthorn_oidc_state-of',
        options: { httpOnly: true, secure: true, sameSite: 'lax', path: '/', maxAge: 600_000 },
      },
    ]);
    expect(browser.take(attempt.state)).toEqual({ kind: 'attempt', attempt });
    expect(browser.cleared).toEqual(['__Host-posthorn_oidc_state-of']);
  });

  it('is not taken after ten minutes, whatever the browser keeps, nor for another state', () => {
    const browser = browserAt('http://127.0.0.1:3000');
    browser.store();
    expect(browser.set).toMatchObject([{ name: 'posthorn_oidc_state-of' }]);
    expect(browser.take('state-of-another')).toEqual({ kind: 'foreign' });
    expect(browser.take('another-state')).toEqual({ kind: 'expired' });
    browser.clock.nowMs = ATTEMPT_MS;
    expect(browser.take(attempt.state)).toEqual({ kind: 'expired' });
  });
});
