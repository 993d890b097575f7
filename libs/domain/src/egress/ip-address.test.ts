import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cidrs, contains, formatIp, parseCidr, parseIp, unmapped } from './ip-address.ts';

describe('an address', () => {
  test.each([
    ['0.0.0.0', 32, 0n],
    ['255.255.255.255', 32, 0xffffffffn],
    ['1.2.3.4', 32, 0x01020304n],
    ['::', 128, 0n],
    ['::1', 128, 1n],
    ['1::', 128, 1n << 112n],
    ['FE80::1%eth0', 128, (0xfe80n << 112n) | 1n],
    ['::ffff:1.2.3.4', 128, 0xffff01020304n],
    ['::ffff:102:304', 128, 0xffff01020304n],
    ['1:2:3:4:5:6:7:8', 128, 0x00010002000300040005000600070008n],
    ['1:2:3:4:5:6:1.2.3.4', 128, 0x00010002000300040005000601020304n],
  ])('%s is read', (text, bits, value) => {
    expect(parseIp(text)).toEqual({ bits, value });
  });

  test.each([
    ...['', 'localhost', '1.2.3', '1.2.3.4.5', '256.1.1.1', '1.2.3.4 ', '0x7f.0.0.1', '2130706433'],
    ...[':', ':::', '1::2::3', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7::8', '12345::'],
    ...['g::', '::1.2.3', '::1.2.3.256', '1.2.3.4::', '[::1]', '-1::', '::1.2.3.4:5'],
  ])('%j is none', (text) => {
    expect(parseIp(text)).toBeNull();
  });

  test('in IPv6 means the same to us as to new URL, however it is shortened', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const normal = new URL(`http://[${text}]/`).hostname.slice(1, -1);
        expect(parseIp(text)).not.toBeNull();
        expect(parseIp(text)).toEqual(parseIp(normal));
      }),
    );
  });
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['192.000.002.007', '192.0.2.7'],
  ['2001:0DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['::', '::'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['0:0:0:0:0:FFFF:C000:0207', '192.0.2.7'],
  ['::192.0.2.7', '::c000:207'],
])('%s has the one text form %s, without a mapping', (text, form) => {
  const address = parseIp(text);
  expect(address && formatIp(unmapped(address))).toBe(form);
});

describe('a range', () => {
  test.each([
    ...[
      '10.0.0.1/8',
      '10.0.0.0/33',
      '10.0.0.0',
      '10.0.0.0/',
      '10.0.0.0/-1',
      '::/129',
      'fe80::1/10',
    ],
    ...['', '/8', 'localhost/8'],
  ])('is not %j', (text) => {
    expect(parseCidr(text)).toBeNull();
    expect(() => cidrs(text)).toThrow('not a range');
  });

  test('contains its first and last address and neither neighbour', () => {
    const [range] = cidrs('172.16.0.0/12');
    const has = (text: string) => {
      const address = parseIp(text);
      return range && address && contains(range, address);
    };
    expect(has('172.16.0.0')).toBe(true);
    expect(has('172.31.255.255')).toBe(true);
    expect(has('172.15.255.255')).toBe(false);
    expect(has('172.32.0.0')).toBe(false);
  });

  test('of width 0 contains its whole family and nothing of the other', () => {
    const [v4, v6] = cidrs('0.0.0.0/0', '::/0');
    fc.assert(
      fc.property(fc.ipV4(), fc.ipV6(), (four, six) => {
        for (const [range, text, isInside] of [
          [v4, four, true],
          [v6, six, true],
          [v4, six, false],
          [v6, four, false],
        ] as const) {
          const address = parseIp(text);
          expect(range && address && contains(range, address)).toBe(isInside);
        }
      }),
    );
  });
});
