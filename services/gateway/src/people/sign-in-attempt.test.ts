import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { pageNamed } from './sign-in-attempt.ts';

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
