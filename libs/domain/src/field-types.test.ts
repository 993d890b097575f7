import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import {
  encodedUrl,
  eventType,
  isCredential,
  isHeaderValue,
  messageTags,
  metadataOf,
  metadataText,
  optionalFields,
  refusalOfHeaderName,
  removableFields,
  uid,
  webhookSecret,
} from './field-types.ts';

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

describe('a header name [security]', () => {
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
    ...['webhook-id', 'webhook-timestamp', 'webhook-signature', 'svix-id', 'svix-own'],
    ...['metadata', 'metadata-flavor'],
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

describe('a header value [security]', () => {
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

describe('a credential [security]', () => {
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

describe('a secret of the client [security]', () => {
  const base64Of = (bytes: number): string => Buffer.alloc(bytes, 0xfb).toString('base64');
  const accepts = (secret: string): boolean => webhookSecret.safeParse(secret).success;

  test('is the base64 of 24 to 64 bytes', () => {
    const accepted = Array.from({ length: 100 }, (_, bytes) => bytes).filter((bytes) =>
      accepts(`whsec_${base64Of(bytes)}`),
    );
    expect([accepted.length, accepted[0], accepted.at(-1)]).toEqual([41, 24, 64]);
  });

  test.each([
    ['without its prefix', base64Of(24)],
    ['without padding', `whsec_${base64Of(25).replace(/=+$/, '')}`],
    ['with padding that it does not need', `whsec_${base64Of(24)}====`],
    ['with bits behind its last byte', `whsec_${base64Of(24)}+x==`],
    ['with bits behind its last two bytes', `whsec_${base64Of(24)}++9=`],
    ['in the alphabet of URLs', `whsec_${base64Of(24).replaceAll('+', '-')}`],
    ['with a line break', `whsec_${base64Of(24)}\n`],
    ['that is empty', 'whsec_'],
  ])('is refused %s', (_what, secret) => {
    expect(accepts(secret)).toBe(false);
  });

  test('is accepted exactly when Node writes its bytes like this', () => {
    const letters = fc.constantFrom(...Array.from('AQgwBx048+/='));
    const endings = fc.string({ unit: letters, minLength: 0, maxLength: 8 });
    fc.assert(
      fc.property(endings, (ending) => {
        const text = base64Of(24) + ending;
        const bytes = Buffer.from(text, 'base64');
        expect(accepts(`whsec_${text}`)).toBe(bytes.toString('base64') === text);
      }),
    );
  });
});

test.each([
  [[], true],
  [['x'.repeat(128), '😀'.repeat(128), ' ', 'a', 'b'], true],
  [['a', 'b', 'c', 'd', 'e', 'f'], false],
  [['a', 'a'], false],
  [[''], false],
  [['x'.repeat(129)], false],
  [[7], false],
  ['a', false],
])('the tags %j of a message are accepted: %s', (tags, isAccepted) => {
  expect(messageTags.safeParse(tags).success).toBe(isAccepted);
});

test.each<[unknown, boolean]>([
  ['order.paid', true],
  ['A-b_c:d/e.9', true],
  ['x'.repeat(128), true],
  ['x'.repeat(129), false],
  ['', false],
  ['a b', false],
  [7, false],
])('the event type %j is accepted: %s', (given, isAccepted) => {
  expect(eventType.safeParse(given).success).toBe(isAccepted);
});

test.each<[unknown, boolean]>([
  ['customer-17', true],
  ['Own.id_1', true],
  ['x'.repeat(128), true],
  ['x'.repeat(129), false],
  ['', false],
  ['a b', false],
  ['a/b', false],
  ['ä', false],
  ['uid:x', false],
])('the uid %j is accepted: %s', (given, isAccepted) => {
  expect(uid.safeParse(given).success).toBe(isAccepted);
});

describe('metadata', () => {
  test.each<[object, string | null]>([
    [{ plan: 'gold', 'a.b': '', $set: 'ü' }, '{"plan":"gold","a.b":"","$set":"ü"}'],
    [{}, null],
  ])('%j is stored as %j, and read again', (given, stored) => {
    expect(metadataText.parse(given)).toBe(stored);
    expect(metadataOf(stored)).toEqual(given);
  });

  test.each<[unknown, string[]]>([
    [['a'], []],
    ['a', []],
    [{ a: 1 }, ['a']],
    [{ a: null }, ['a']],
    [{ '': 'b' }, ['']],
    [{ ['x'.repeat(41)]: '' }, ['x'.repeat(41)]],
    [{ a: 'x'.repeat(501) }, ['a']],
    [Object.fromEntries(Array.from({ length: 21 }, (_, n) => [n, ''])), []],
    [JSON.parse('{"__proto__":"b"}'), []],
  ])('%j is refused because of %j', (given, path) => {
    const { error } = metadataText.safeParse(given);
    expect(error?.issues.map((issue) => issue.path)).toEqual([path]);
  });
});

describe('null', () => {
  const fields = { uid, list: z.array(z.string()), limit: z.int().nullable() };

  test('is the same as a field that is left out when something is created', () => {
    const schema = z.object(optionalFields(fields));
    const absent = { uid: undefined, list: undefined, limit: undefined };
    expect(schema.parse({ uid: null, list: null, limit: null })).toEqual(absent);
    const given = { uid: 'a', list: ['b'], limit: 3 };
    expect(schema.parse(given)).toEqual(given);
    expect(Object.keys(schema.parse({}))).toEqual([]);
  });

  test('is kept in an update, in which a field that is left out stays', () => {
    const schema = z.object(removableFields(fields));
    const removed = { uid: null, list: null, limit: null };
    expect(schema.parse(removed)).toEqual(removed);
    expect(Object.keys(schema.parse({}))).toEqual([]);
    expect(schema.safeParse({ uid: 'a b' }).success).toBe(false);
  });
});
