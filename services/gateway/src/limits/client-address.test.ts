import { describe, expect, test } from '@jest/globals';
import express, { type Request } from 'express';
import type { Socket } from 'node:net';
import { addressKey, clientAddress, useClientAddress } from './client-address.ts';

function addressOf(forwarded: string | undefined, trustedProxies = 1, remoteAddress = '10.0.0.1') {
  const socket = { remoteAddress } as Socket;
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
  return clientAddress({ socket, headers }, trustedProxies);
}

describe('the address of a client', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7:4711', '192.0.2.7'],
    ['"192.0.2.7:4711"', '192.0.2.7'],
    ['192.0.2.7:_gazonk', '192.0.2.7'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:db8:0:0::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['"[2001:db8::1]:4711"', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['[::ffff:192.0.2.7]:4711', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    [' 192.0.2.7 , ', '192.0.2.7'],
  ])('is read from %s as %s', (forwarded, address) => {
    expect(addressOf(forwarded)).toBe(address);
  });

  test.each([
    '',
    'unknown',
    '_hidden',
    '192.0.2.7:',
    '192.0.2.7:x',
    '300.0.0.1',
    '[2001:db8::1',
    '"',
  ])('is that of the proxy when it forwards %j, which is no address', (forwarded) => {
    expect(addressOf(forwarded)).toBe('10.0.0.1');
  });

  test('is what the proxy wrote, not what the client wrote before, quotes and commas included', () => {
    expect(addressOf('203.0.113.9, 192.0.2.7:4711')).toBe('192.0.2.7');
    expect(addressOf('"203.0.113.9, 192.0.2.7')).toBe('192.0.2.7');
  });

  test.each([
    [0, '10.0.0.1'],
    [1, '198.51.100.3'],
    [2, '198.51.100.2'],
    [3, '192.0.2.7'],
    [9, '192.0.2.7'],
  ])('with %i trusted proxies is %s', (trusted, address) => {
    const forwarded = '192.0.2.7:4711, 198.51.100.2:80, [::ffff:198.51.100.3]';
    expect(addressOf(forwarded, trusted)).toBe(address);
  });

  test('is that of the next trusted proxy when the one behind it is no address', () => {
    expect(addressOf('192.0.2.7, unknown, 198.51.100.3', 3)).toBe('198.51.100.3');
  });

  test('is the `ip` of every request of the app, also when its connection is closed meanwhile', () => {
    const app = express();
    useClientAddress(app, 1);
    const socket = { remoteAddress: '10.0.0.1' };
    const headers = { 'x-forwarded-for': '192.0.2.7:4711' };
    const request = Object.assign(Object.create(app.request) as Request, { headers, socket });
    expect(request.ip).toBe('192.0.2.7');
    Object.assign(request, { headers: {}, socket: {} });
    expect(request.ip).toBe('192.0.2.7');
  });

  test('of a connection over IPv6 from an IPv4 client is the IPv4 address', () => {
    expect(addressOf(undefined, 0, '::ffff:192.0.2.7')).toBe('192.0.2.7');
  });
});

describe('the key of a client address', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['2001:db8:1:2::1', '20010db800010002/64'],
    ['2001:db8:1:2:ffff:ffff:ffff:ffff', '20010db800010002/64'],
    ['fe80::1%eth0', 'fe80000000000000/64'],
    ['::1', '0/64'],
    [undefined, 'unknown'],
    ['not:an:address', 'unknown'],
    ['192.0.2.7:4711', 'unknown'],
    ['x'.repeat(10_000), 'unknown'],
    [':'.repeat(10_000), 'unknown'],
  ])('of %s is %s', (ip, key) => {
    expect(addressKey(ip)).toBe(key);
  });
});
