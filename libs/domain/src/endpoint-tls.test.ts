import { describe, expect, it } from '@jest/globals';
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { selfSigned } from '../../../test/support/receivers/self-signed.ts';
import { readClientKey, type TlsFields, tlsOf } from './endpoint-tls.ts';

const NOW_MS = Date.now();
const DAY_MS = 86_400_000;
const CHECKS = { nowMs: () => NOW_MS, refusalOfOpenSsl: () => null };
const own = selfSigned('client.example.com');
const other = selfSigned('authority.example.com');
const expired = selfSigned('old.example.com', { validUntilMs: NOW_MS - 1_000 });

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const encrypted = createPrivateKey(own.key)
  .export({ ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'hush' })
  .toString();

describe('the TLS settings of a webhook [security]', () => {
  it('are a certificate with its key, authorities, or both', () => {
    const client = { certificate: own.cert, key: own.key };
    expect(tlsOf(client, CHECKS)).toEqual({ kind: 'settings', tls: { client, ca: null } });
    expect(tlsOf({ ca: other.cert }, CHECKS)).toEqual({
      kind: 'settings',
      tls: { client: null, ca: other.cert },
    });
    const both = { ...client, ca: other.cert };
    expect(tlsOf(both, CHECKS)).toEqual({ kind: 'settings', tls: { client, ca: other.cert } });
  });

  it('may have comments around certificates and another format of the key, which are not stored', () => {
    const sec1 = createPrivateKey(own.key).export({ type: 'sec1', format: 'pem' }).toString();
    const fields = {
      certificate: `# Ours\n${own.cert}`,
      key: sec1,
      ca: `First\n${other.cert}\nSecond\r\n${own.cert}`,
    };
    expect(tlsOf(fields, CHECKS)).toEqual({
      kind: 'settings',
      tls: { client: { certificate: own.cert, key: own.key }, ca: other.cert + own.cert },
    });
  });

  const notPem = 'must be certificates in PEM, and nothing else';
  const noKey = 'must be a private key in PEM that is not encrypted';
  const cutOff = own.cert.slice(0, -30);
  const garbled = own.cert.replace(/[A-Za-z0-9]{20}\n/, 'AAAAAAAAAAAAAAAAAAAA\n');
  it.each<[string, TlsFields, [string, string][]]>([
    ['nothing', {}, [['certificate', 'is required, or ca']]],
    ['a certificate alone', { certificate: own.cert }, [['key', 'is required with a certificate']]],
    ['a key alone', { key: own.key }, [['certificate', 'is required with a key']]],
    [
      'the key of another certificate',
      { certificate: own.cert, key: other.key },
      [['key', 'is not the key of the first certificate']],
    ],
    ['an encrypted key', { certificate: own.cert, key: encrypted }, [['key', noKey]]],
    ['a certificate as key', { certificate: own.cert, key: own.cert }, [['key', noKey]]],
    ['other text', { ca: 'no certificate' }, [['ca', notPem]]],
    ['a certificate that is cut off', { ca: cutOff }, [['ca', notPem]]],
    ['a private key among authorities', { ca: other.cert + other.key }, [['ca', notPem]]],
    ['a garbled certificate', { ca: garbled }, [['ca', 'certificate 1 cannot be read']]],
    [
      'an expired certificate',
      { certificate: expired.cert, key: expired.key },
      [['certificate', 'certificate 1 has expired']],
    ],
    [
      'an expired authority',
      { ca: own.cert + expired.cert },
      [['ca', 'certificate 2 has expired']],
    ],
    ['six authorities', { ca: own.cert.repeat(6) }, [['ca', 'must have at most 5 certificates']]],
    [
      'two wrong fields',
      { certificate: 'x', key: 'y', ca: 'z' },
      [
        ['certificate', notPem],
        ['ca', notPem],
        ['key', noKey],
      ],
    ],
  ])('are refused with %s', (_what, fields, problems) => {
    const expected = problems.map(([path, message]) => ({ path, message }));
    expect(tlsOf(fields, CHECKS)).toEqual({ kind: 'refused', problems: expected });
  });

  it('are refused with a certificate whose date is none', () => {
    const der = Buffer.from(own.cert.replaceAll(/-----[A-Z ]+-----/g, ''), 'base64');
    const utcTime = der.indexOf(Buffer.from([0x17, 13]));
    der.write('no date', utcTime + 2, 'latin1');
    const ca = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`;
    expect(tlsOf({ ca }, CHECKS)).toEqual({
      kind: 'refused',
      problems: [{ path: 'ca', message: 'certificate 1 cannot be read' }],
    });
  });

  it('are refused when OpenSSL refuses them', () => {
    const refusalOfOpenSsl = ({ ca }: { ca?: string }) => (ca ? 'CA too weak' : 'key too small');
    const fields = { certificate: own.cert, key: own.key, ca: other.cert };
    expect(tlsOf(fields, { ...CHECKS, refusalOfOpenSsl })).toEqual({
      kind: 'refused',
      problems: [
        { path: 'certificate', message: 'is refused by OpenSSL: key too small' },
        { path: 'ca', message: 'is refused by OpenSSL: CA too weak' },
      ],
    });
  });

  it('may have a certificate that is not valid yet', () => {
    const { cert: ca } = selfSigned('next.example.com', { validFromMs: NOW_MS + DAY_MS / 2 });
    expect(tlsOf({ ca }, CHECKS)).toEqual({ kind: 'settings', tls: { client: null, ca } });
  });
});

const KINDS = {
  kind: 'refused',
  problem: 'must be an RSA key of at most 4096 bits, or a key of P-256, P-384, P-521 or Ed25519',
};
const NOT_A_KEY = {
  kind: 'refused',
  problem: 'must be a private key in PEM that is not encrypted',
};

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
const onCurve = (namedCurve: string): KeyObject =>
  generateKeyPairSync('ec', { namedCurve }).privateKey;
const pemOf = (key: KeyObject, type: 'pkcs8' | 'pkcs1' | 'sec1' = 'pkcs8'): string =>
  key.export({ type, format: 'pem' }).toString();
const armored = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der.toString('base64')}\n-----END ${label}-----\n`;
/** The key with parts that do not belong to it. */
const changedRsa = (changed: object): string =>
  pemOf(createPrivateKey({ key: { ...rsa.export({ format: 'jwk' }), ...changed }, format: 'jwk' }));

describe('the private key of a client certificate', () => {
  it.each<[string, KeyObject, 'pkcs8' | 'pkcs1' | 'sec1']>([
    ['RSA in PKCS #8', rsa, 'pkcs8'],
    ['RSA in PKCS #1', rsa, 'pkcs1'],
    ['P-256 in PKCS #8', onCurve('P-256'), 'pkcs8'],
    ['P-384 in SEC 1', onCurve('P-384'), 'sec1'],
    ['P-521 in PKCS #8', onCurve('P-521'), 'pkcs8'],
    ['Ed25519', generateKeyPairSync('ed25519').privateKey, 'pkcs8'],
  ])('may be %s', (_what, key, type) => {
    const read = readClientKey(`# A comment\n${pemOf(key, type)}`);
    expect(read.kind === 'key' && read.key.equals(key)).toBe(true);
  });

  it('is refused without being read when it is too large for what it claims to be', () => {
    // What OpenSSL makes of them does not matter: it never sees them.
    const large = Buffer.concat([Buffer.from('308205f0020100', 'hex'), Buffer.alloc(1_500)]);
    expect(readClientKey(armored('PRIVATE KEY', large))).toEqual(KINDS);
    expect(readClientKey(armored('EC PRIVATE KEY', large))).toEqual(KINDS);
    expect(readClientKey(armored('RSA PRIVATE KEY', Buffer.alloc(2_401)))).toEqual(KINDS);
  });

  it('is refused when it is of another kind', () => {
    const { privateKey } = generateKeyPairSync('x25519');
    expect(readClientKey(pemOf(privateKey))).toEqual(KINDS);
    const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2_048 }).privateKey;
    expect(readClientKey(pemOf(pss))).toEqual(KINDS);
  });

  it('is refused when its RSA factors do not belong to the modulus', () => {
    const { n } = rsa.export({ format: 'jwk' });
    expect(readClientKey(changedRsa({ p: n }))).toEqual(KINDS);
    expect(readClientKey(changedRsa({ dp: n }))).toEqual(KINDS);
    expect(readClientKey(changedRsa({ dq: n }))).toEqual(KINDS);
    expect(readClientKey(changedRsa({ e: Buffer.alloc(200, 7).toString('base64url') }))).toEqual(
      KINDS,
    );
  });

  it.each([
    ['no PEM', 'text'],
    ['another label', armored('DSA PRIVATE KEY', Buffer.alloc(10))],
    ['nothing that can be read', armored('PRIVATE KEY', Buffer.alloc(10))],
    ['the wrong label', pemOf(rsa, 'pkcs1').replaceAll('RSA PRIVATE', 'EC PRIVATE')],
  ])('is refused with %s', (_what, pem) => {
    expect([KINDS, NOT_A_KEY]).toContainEqual(readClientKey(pem));
  });
});
