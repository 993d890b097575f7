import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { parseConfig } from '../service/config.ts';
import { egressProxySettings } from './egress.ts';

const parse = (value: string) =>
  parseConfig('dispatcher', z.object(egressProxySettings), { EGRESS_PROXY_URL: value });

test.each([
  ['http://proxy.internal:3128', 'proxy.internal:3128'],
  ['https://me:p%40ss@10.0.0.8:8443/', '10.0.0.8:8443'],
])('the proxy may be %s', (value, host) => {
  expect(parse(value).EGRESS_PROXY_URL?.host).toBe(host);
});

test('without a URL there is no proxy [security]', () => {
  expect(parse('')).toEqual({ EGRESS_PROXY_TARGET: 'address' });
});

test.each([
  'socks5://me:hunter2@proxy:1080',
  'http://me:hunter2@proxy:3128/path',
  'http://me:hunter2%ZZ@proxy:3128',
  'http://me:hunter2%0A@proxy:3128',
  'me:hunter2@proxy:3128',
])('%s is refused by a message without the password', (value) => {
  const parsing = (): unknown => parse(value);
  expect(parsing).toThrow(/EGRESS_PROXY_URL: must be http:\/\/host:port/);
  expect(parsing).not.toThrow(/hunter2/);
});
