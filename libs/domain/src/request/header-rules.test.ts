import { describe, expect, test } from '@jest/globals';
import { isCredential, isHeaderValue, refusalOfHeaderName } from './header-rules.ts';

describe('a header name', () => {
  test.each([
    ...[
      'connection',
      'keep-alive',
      'te',
      'trailer',
      'transfer-encoding',
      'upgrade',
      'host',
      'cookie',
    ],
    ...['expect', 'proxy-authorization', 'proxy-connection', 'via', 'x-real-ip', 'forwarded'],
    ...[
      'x-forwarded-for',
      'x-forwarded-host',
      'content-type',
      'content-length',
      'content-encoding',
    ],
    ...['webhook-id', 'webhook-timestamp', 'webhook-signature', 'metadata', 'metadata-flavor'],
    ...['x-google-metadata-request'],
    ...['x-aws-ec2-metadata-token', 'x-aws-ec2-metadata-token-ttl-seconds', 'user-agent'],
  ])('%s is refused in any case', (name) => {
    expect(refusalOfHeaderName(name)).toMatch(/^is a header/);
    expect(refusalOfHeaderName(name.toUpperCase())).toMatch(/^is a header/);
  });

  test.each([
    ...['', ' ', 'a b', 'a:', 'a\r\nb', 'a\n', 'a\0', 'é', 'x"y', 'a(b)', 'a/b', 'x'.repeat(129)],
  ])('%j is no HTTP token', (name) => {
    expect(refusalOfHeaderName(name)).toMatch(/^must be an HTTP header name/);
  });

  test.each(['X-Service-Signature', 'Authorization', 'x-api-key', "!#$%&'*+.^_`|~0", 'hosts'])(
    '%s is allowed',
    (name) => {
      expect(refusalOfHeaderName(name)).toBeNull();
    },
  );

  test('has at most 128 characters', () => {
    expect(refusalOfHeaderName('x'.repeat(128))).toBeNull();
  });
});

describe('a header value', () => {
  test('has every printable Latin-1 character and no other', () => {
    const allowed = Array.from({ length: 0x200 }, (_, code) => code).filter((code) =>
      isHeaderValue(`a${String.fromCharCode(code)}z`),
    );
    const printable = (code: number) =>
      (code >= 0x20 && code <= 0x7e) || (code >= 0xa0 && code <= 0xff);
    expect(allowed).toEqual(Array.from({ length: 0x200 }, (_, code) => code).filter(printable));
  });

  test.each(['a\r\nX-Evil: 1', 'a\n', '\ra', 'a\0b', '😀', '\u2028'])('is not %j', (value) => {
    expect(isHeaderValue(value)).toBe(false);
  });

  test.each([' ', ' a', 'a ', '  a  '])('has no space at either end: %j', (value) => {
    expect(isHeaderValue(value)).toBe(false);
  });

  test('may be one character, or have spaces within', () => {
    for (const value of ['a', 'é', 'a b', 'Bearer  a b c']) expect(isHeaderValue(value)).toBe(true);
  });

  test('may be empty and has at most 4,096 characters', () => {
    expect(isHeaderValue('')).toBe(true);
    expect(isHeaderValue('x'.repeat(4_096))).toBe(true);
    expect(isHeaderValue('x'.repeat(4_097))).toBe(false);
  });
});

describe('a credential', () => {
  test.each(['secret\n', '\nsecret', 'a\rb', '\x07u', 'a\tb', 'a\0', 'a\x7f', 'half \ud83d'])(
    'is not %j',
    (text) => {
      expect(isCredential(text)).toBe(false);
    },
  );

  test.each(['secret', ' se cret ', 'pässwörd', '密码', '😀', 'a:b'])('may be %j', (text) => {
    expect(isCredential(text)).toBe(true);
  });
});
