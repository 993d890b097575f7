import { expect, test } from '@jest/globals';
import { baseOf, pageText } from './page-text.ts';

test.each(['', '/', '/a', '/a/', '/webhooks/wh_1', '/webhooks/wh_1/attempts', '//evil', '/a//b'])(
  'the base of /dashboard%s leads to /dashboard/, behind a prefix too',
  (below) => {
    for (const prefix of ['', '/hooks', '/a/b/c']) {
      const address = `https://example.com${prefix}/dashboard${below}`;
      const base = new URL(baseOf(`/dashboard${below}`), address);
      expect(base.href).toBe(`https://example.com${prefix}/dashboard/`);
    }
  },
);

test('the base replaces one that the build has put in', () => {
  const page =
    '<!doctype html><html><head lang="en">\n<base href="/dashboard/" /><title>P</title></head></html>';
  expect(pageText(page, '/dashboard/a/b')).toBe(
    '<!doctype html><html><head lang="en"><base href="../"><title>P</title></head></html>',
  );
});
