import { describe, expect, test } from '@jest/globals';
import { addressKey } from './address-key.ts';

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
