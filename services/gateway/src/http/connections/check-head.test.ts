import { describe, expect, test } from '@jest/globals';
import type { IncomingMessage } from 'node:http';
import { checkHead } from './check-head.ts';

function request(host: string | undefined, url = '/apps', method = 'GET'): IncomingMessage {
  const headers = host === undefined ? {} : { host };
  const rawHeaders = host === undefined ? [] : ['Accept', 'Host', 'Host', host];
  return { httpVersion: '1.1', headers, rawHeaders, url, method } as unknown as IncomingMessage;
}

describe('the host of a request', () => {
  test.each([
    ...['a', 'a.example', 'A.Example.', 'my_service:8080', 'a.example:', '192.0.2.7:80', '[::1]'],
    ...['[2001:db8::1]:8080', 'xn--bcher-kva.example', 'a%2dexample', 'a-.example'],
  ])('may be %s', (host) => {
    expect(checkHead(request(host))).toBeNull();
  });

  test.each([
    ...[
      '',
      ' ',
      'a b',
      'a/b',
      'a b/c',
      'a?b',
      'a#b',
      'user@a',
      'user:pw@a',
      'a:b',
      'a:80:80',
      ':80',
    ],
    ...[
      'a:99999',
      '[::1',
      '[::1]x',
      '[a]',
      '::1',
      'a%2fb',
      'a%',
      'b\u00fccher',
      'a, b',
      'a\\b',
      '<a>',
    ],
  ])('may not be %j', (host) => {
    expect(checkHead(request(host))).toBe('malformed');
  });
});

describe('the target of a request', () => {
  test.each([
    ['/apps?x=http://b', '/apps?x=http://b', 'a'],
    ['//b/apps', '//b/apps', 'a'],
    ['http://b/apps?x=1', '/apps?x=1', 'b'],
    ['HTTPS://b:8443/apps', '/apps', 'b:8443'],
    ['http://b', '/', 'b'],
    ['http://b?x=1', '/?x=1', 'b'],
  ])('%s is %s of a host', (url, path, host) => {
    const given = request('a', url);
    expect(checkHead(given)).toBeNull();
    expect([given.url, given.headers.host]).toEqual([path, host]);
  });

  test.each([
    'http://',
    'http:///apps',
    'http://user@b/apps',
    'http://b c/apps',
    'ftp://b/apps',
    '*',
    'b:80',
    '',
  ])('may not be %j', (url) => {
    expect(checkHead(request('a', url))).toBe('malformed');
  });

  test('may be * for OPTIONS', () => {
    expect(checkHead(request('a', '*', 'OPTIONS'))).toBeNull();
  });

  test('in absolute form excuses no wrong host', () => {
    expect(checkHead(request('a b', 'http://b/apps'))).toBe('malformed');
  });
});
