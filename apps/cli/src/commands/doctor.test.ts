import { expect, it } from '@jest/globals';
import type { Me } from '@posthorn/client';
import { isPublic, judgeCertificates, judgeClock, judgeKey, judgeVersions } from './doctor.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-01-31T09:30:00.000Z');

it.each([
  ['Sat, 31 Jan 2026 09:30:00 GMT', 'ok'],
  ['Sat, 31 Jan 2026 09:30:10 GMT', 'warn'],
  ['Sat, 31 Jan 2026 09:28:00 GMT', 'fail'],
  [null, 'warn'],
])('judges the clock of a server that answers %s', (date, status) => {
  expect(judgeClock(date, NOW_MS).status).toBe(status);
});

it('judges certificates by the one that ends first', () => {
  const judge = (...days: number[]): string =>
    judgeCertificates({ problem: null, ends: days.map((day) => NOW_MS + day * DAY_MS) }, NOW_MS)
      .status;
  expect([judge(80, 400), judge(80, 13)]).toEqual(['ok', 'warn']);
  const result = judgeCertificates({ problem: 'CERT_HAS_EXPIRED', ends: [NOW_MS - 1] }, NOW_MS);
  expect(result.status).toBe('fail');
});

it('warns of a key that expires within a week', () => {
  const judge = (days: number): string =>
    judgeKey(
      {
        keyName: 'CI',
        companyName: 'Shop',
        expiresAt: new Date(NOW_MS + days * DAY_MS).toISOString(),
      } as Me,
      'profile default',
      NOW_MS,
    ).status;
  expect([judge(6), judge(30)]).toEqual(['warn', 'ok']);
});

it('warns of another minor version', () => {
  expect(judgeVersions('1.2.0', '1.2.9').status).toBe('ok');
  expect(judgeVersions('1.1.0', '1.2.0').status).toBe('warn');
});

it.each([
  ['93.184.216.34', true],
  ['2606:2800:220:1::1', true],
  ['10.1.2.3', false],
  ['127.0.0.1', false],
  ['169.254.169.254', false],
  ['::1', false],
  ['fd00::1', false],
  ['::ffff:10.0.0.1', false],
  ['example.com', false],
])('tells that %s is public: %s', (address, expected) => {
  expect(isPublic(address)).toBe(expected);
});
