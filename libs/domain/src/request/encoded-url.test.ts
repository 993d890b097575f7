import { expect, test } from '@jest/globals';
import { encodedUrl } from './encoded-url.ts';

const encoded = (text: string): string => encodedUrl(new URL(text));

test.each([
  ['/a|b', '/a%7Cb'],
  ['/^{c}`"<>[d]', '/%5E%7Bc%7D%60%22%3C%3E%5Bd%5D'],
  ['/?q=|^{}`"<>[x]', '/?q=%7C%5E%7B%7D%60%22%3C%3E%5Bx%5D'],
  ['/100%', '/100%25'],
  ['/%zz%4?%', '/%25zz%254?%25'],
  ['/é ö', '/%C3%A9%20%C3%B6'],
])('the path %s is sent as %s', (given, sent) => {
  expect(encoded(`https://example.com${given}`)).toBe(`https://example.com${sent}`);
});

test.each([
  'https://example.com/',
  'https://example.com:8443/a%2Fb%7c;c=1,2/~x/@me:(1)?a=%20b&c=d/e?f=!$*+',
  'http://[2606:4700::1111]:8080/x',
])('%s stays as it is', (url) => {
  expect(encoded(url)).toBe(url);
});

test('an empty query is not sent', () => {
  expect(encoded('https://example.com/?')).toBe('https://example.com/');
});

test('what is encoded stays as it is', () => {
  const once = encoded('https://example.com/a|b%?q=[%zz]{`}');
  expect(encoded(once)).toBe(once);
  expect(once).toMatch(/^[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+$/);
});
